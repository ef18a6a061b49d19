// The questions that wait for a person: the strip on top, and the same panel inside the drawer.
import { useEffect, useState } from "preact/hooks";
import { Ticking, since } from "./clock.js";
import { clearOutcome, outcomeMark, outcomeText, outcomes, send } from "./commands.js";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";
import { questionKey, strip } from "./placement.js";
import { address } from "./route.js";
import { agents, offline } from "./state.js";
import { dotted, span } from "./words.js";

const ARM_MS = 400;   // a panel that has just arrived can't be answered by a click or key meant for something else

const STILL_ASKED_MS = 8000;

const LABELS = { approve: "Approve", deny: "Deny", answer: "Answer" };

/** Sends an answer that is bound to the question as it was shown. */
export function answer(name, question, verb, extra = {}) {
  const agent = agents.get(name)?.card.peek().agent ?? name;
  const label = verb === "answer" ? `Answer ${extra.key}` : LABELS[verb];
  return send(questionKey(name, question), label, { verb, agent, ...extra, fingerprint: question.fingerprint });
}

/** Whether rows are offered as buttons: a dialog that can be approved has that instead. */
const offersOptions = ({ can, options }) => !can.includes("approve") && options.length > 0;

export function Strip() {
  const panels = strip.value;
  if (!panels.length) return null;
  return html`<section class="strip" aria-label="Needs you">
    ${panels.map((panel) => html`<${Panel} key=${panel.key} panel=${panel} />`)}
  </section>`;
}

function Panel({ panel: { name, question, gone, key } }) {
  const card = agents.get(name)?.card.value;
  const outcome = outcomes.value.get(key);
  return html`<article class="panel" data-question=${name} data-fingerprint=${question.fingerprint} data-gone=${gone} data-status="needs_you"
      tabindex="0" aria-label=${`${name} needs you: ${question.reason}`}>
    <div class="panel-who"><h2>${name}</h2><span class="role">${dotted(card?.role, card?.backend)}</span>
      <${Ticking} class="waited" text=${() => gone ? goneWord(outcome) : `waiting ${span(since(question.since))}`} /></div>
    <pre class="dialog-text" tabindex="-1">${question.dialog}</pre>
    <${Answers} name=${name} question=${question} gone=${gone} withOpen=${true} />
  </article>`;
}

const goneWord = (outcome) => outcome?.state === "done" ? "answered" : "gone";

/** The buttons of a question; after a click, what became of it, in the same room. */
export function Answers({ name, question, gone = false, withOpen = false, allOptions = false }) {
  const armed = useArmed(question.fingerprint) && !offline.value;
  const place = questionKey(name, question);
  const outcome = outcomes.value.get(place);
  const busy = Boolean(outcome) || gone;
  const rows = offersOptions(question) || allOptions ? question.options : [];
  const press = (event, verb, extra) => {
    keepFocus(event.currentTarget);
    answer(name, question, verb, extra);
  };
  const verbs = question.can.map((verb) => html`<button key=${verb} class=${verb} disabled=${!armed} data-action=${verb}
    aria-label=${`${LABELS[verb]} ${name}`} onClick=${(event) => press(event, verb)}>${LABELS[verb]}<${Keycap}>${verb[0]}</${Keycap}></button>`);
  return html`<div class="answers" data-rows=${rows.length > 0} data-busy=${busy}>
    <div class="answer-buttons" inert=${busy}>
      ${!offersOptions(question) && verbs}
      ${rows.map(({ key, text }) => html`<button key=${`row ${key}`} class="option" disabled=${!armed} data-action="answer" data-key=${key}
        title=${text} aria-label=${`Answer ${name}: ${text}`} onClick=${(event) => press(event, "answer", { key })}>
        <${Keycap}>${key}</${Keycap}><span>${text}</span></button>`)}
      ${offersOptions(question) && verbs}
      ${withOpen && html`<a class="button" href=${address(name)} data-action="open" aria-label=${`Open ${name}`}>Open<${Keycap}>o</${Keycap}></a>`}
    </div>
    ${outcome && html`<${Became} outcome=${outcome} place=${place} gone=${gone} />`}
    ${gone && !outcome && html`<div class="became">gone: no longer asked</div>`}
  </div>`;
}

/** The buttons are about to be hidden: the panel takes their focus, so that it does not fall back to the page. */
function keepFocus(button) {
  if (document.activeElement === button) button.closest("[data-question], .drawer")?.focus({ preventScroll: true });
}

function Became({ outcome, place, gone }) {
  const failed = outcome.state === "refused" || outcome.state === "lost";
  const text = outcomeText(outcome);
  useEffect(() => {
    if (outcome.state !== "done" || gone) return undefined;
    // Answered, yet still asked: the buttons come back.
    const timer = setTimeout(() => clearOutcome(place), STILL_ASKED_MS);
    return () => clearTimeout(timer);
  }, [outcome.state, gone]);
  return html`<div class="became" data-outcome=${outcome.state} title=${text}>
    <span class="became-text"><span class="mark" aria-hidden="true">${outcomeMark(outcome)}</span>${text}</span>
    ${failed && html`<button data-action="again" onClick=${() => clearOutcome(place)}>Back</button>`}
  </div>`;
}

/** True once the question has been on a visible page for a moment. */
function useArmed(fingerprint) {
  const [armed, setArmed] = useState(null);
  useEffect(() => {
    let timer = 0;
    const arm = () => {
      clearTimeout(timer);
      setArmed(null);
      if (!document.hidden) timer = setTimeout(() => setArmed(fingerprint), ARM_MS);
    };
    arm();
    document.addEventListener("visibilitychange", arm);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", arm);
    };
  }, [fingerprint]);
  return armed === fingerprint;
}
