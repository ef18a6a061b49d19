// The questions that wait for a person: the strip on top, and the same panel inside the drawer.
import { useEffect } from "preact/hooks";
import { ActButton } from "./act.js";
import { useArmed } from "./arming.js";
import { Ticking, since } from "./clock.js";
import { clearOutcome, outcomeMark, outcomeText, outcomes, send } from "./commands.js";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";
import { questionKey, strip } from "./placement.js";
import { address } from "./route.js";
import { agents } from "./state.js";
import { capital, dotted, span } from "./words.js";

const ARM_MS = 400;   // a panel that has just arrived can't be answered by a click or key meant for something else

const STILL_ASKED_MS = 8000;

/** A permission is denied; a choice is only put away. */
function labelOf(verb, question) {
  if (verb === "deny") return offersOptions(question) ? "Dismiss" : "Deny";
  return capital(verb);
}

/** Sends an answer that is bound to the question as it was shown. */
export function answer(name, question, verb, extra = {}) {
  const agent = agents.get(name)?.card.peek().agent ?? name;
  const label = verb === "answer" ? `Answer ${extra.key}` : labelOf(verb, question);
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
      <${Ticking} class="waited" text=${() => gone ? goneWord(outcome) : `asked ${span(since(question.since))} ago`} /></div>
    <pre class="dialog-text" tabindex="-1">${question.dialog}</pre>
    <${Answers} name=${name} question=${question} gone=${gone} withOpen=${true} />
  </article>`;
}

const goneWord = (outcome) => outcome?.state === "done" ? "answered" : "gone";

/** The buttons of a question; after a click, what became of it, in the same room. */
export function Answers({ name, question, gone = false, withOpen = false, allOptions = false }) {
  const armed = useArmed(question.fingerprint, ARM_MS);
  const place = questionKey(name, question);
  const outcome = outcomes.value.get(place);
  const busy = Boolean(outcome) || gone;
  const rows = offersOptions(question) || allOptions ? question.options : [];
  const press = (event, verb, extra) => {
    keepFocus(event.currentTarget);
    answer(name, question, verb, extra);
  };
  const verbs = question.can.map((verb) => html`<${ActButton} key=${verb} class=${verb} ready=${armed} data-action=${verb}
    aria-label=${`${labelOf(verb, question)} ${name}`} onClick=${(event) => press(event, verb)}>${labelOf(verb, question)}<${Keycap}>${verb[0]}</${Keycap}></${ActButton}>`);
  return html`<div class="answers" data-rows=${rows.length > 0} data-busy=${busy}>
    <div class="answer-buttons" inert=${busy}>
      ${!offersOptions(question) && verbs}
      ${rows.map(({ key, text }) => html`<${ActButton} key=${`row ${key}`} class="option" ready=${armed} data-action="answer" data-key=${key}
        title=${text} aria-label=${`Answer ${name}: ${text}`} onClick=${(event) => press(event, "answer", { key })}>
        <${Keycap}>${key}</${Keycap}><span>${text}</span></${ActButton}>`)}
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
