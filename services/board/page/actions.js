// The row of actions in the drawer, and the line that says what became of the last one.
import { useEffect, useRef, useState } from "preact/hooks";
import { ARM_MS, ActButton, FreshButton, LockedWord } from "./act.js";
import { useArmed } from "./arming.js";
import { latestOutcome, send } from "./commands.js";
import { TextField } from "./field.js";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";
import { Outcome } from "./outcome.js";
import { shortened } from "./words.js";

const LABELS = { interrupt: "Interrupt", restart: "Restart", stop: "Stop", resume: "Resume", spawn: "Start" };
const ASKED_TWICE = new Set(["stop", "restart"]);

/** A side service reads no prompts: nothing is sent to it, and it has no turn that could be interrupted. */
const listens = ({ status, backend }) => status === "running" && backend !== "service";

/** What can be done with an agent as it is. */
function verbsFor(card) {
  const { status } = card;
  if (status === "running") return listens(card) ? ["interrupt", "restart", "stop"] : ["restart", "stop"];
  return status === "not_started" ? ["spawn"] : ["resume", "spawn"];
}

export function Actions({ name, card }) {
  const [asked, setAsked] = useState(null);
  const place = `drawer ${name}`;
  const act = (verb) => {
    if (ASKED_TWICE.has(verb) && asked !== verb) return setAsked(verb);
    setAsked(null);
    send(place, LABELS[verb], { verb, agent: card.agent });
  };
  const buttons = verbsFor(card).map((verb) => html`
    <${FreshButton} key=${verb} data-action=${verb} aria-label=${`${LABELS[verb]} ${name}`} onClick=${() => act(verb)}>${LABELS[verb]}</${FreshButton}>`);
  return html`<footer class="actions">
    ${listens(card) && html`<${SendField} name=${name} card=${card} place=${place} />`}
    <div class="row">
      ${asked ? html`<${AskOnce} verb=${asked} name=${name} yes=${() => act(asked)} no=${() => setAsked(null)} />` : buttons}
      <${LockedWord} />
    </div>
    <${Outcome} outcome=${latestOutcome(card.agent)} />
  </footer>`;
}

function AskOnce({ verb, name, yes, no }) {
  const keep = useRef();
  const armed = useArmed(verb, ARM_MS);   // not disabled until then, since it takes the focus
  useEffect(() => keep.current.focus(), []);
  return html`<span class="ask">${LABELS[verb]} ${name}?</span>
    <${FreshButton} class="danger" data-action=${`${verb}-confirm`} onClick=${yes}>${LABELS[verb]}</${FreshButton}>
    <button ref=${keep} data-action="keep" onClick=${() => armed && no()}>Cancel</button>`;
}

function SendField({ name, card, place }) {
  const [idle, setIdle] = useState(false);
  const submit = (text) => send(place, `“${shortened(text, 40)}”`, { verb: "send", agent: card.agent, text, when: idle ? "idle" : "now" });
  return html`<${TextField} name="send" hint="Send a text…" label=${`Send a text to ${name}`} onSubmit=${submit}>${(sendNow) => html`
    <label class="when"><input type="checkbox" name="idle" checked=${idle} onChange=${() => setIdle(!idle)} />when idle</label>
    <${ActButton} data-action="send" aria-label=${`Send to ${name}`} onClick=${sendNow}>Send<${Keycap}>s</${Keycap}></${ActButton}>`}
  </${TextField}>`;
}
