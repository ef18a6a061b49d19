// The row of actions in the drawer, and the line that says what became of the last one.
import { useEffect, useRef, useState } from "preact/hooks";
import { latestOutcome, send } from "./commands.js";
import { TextField } from "./field.js";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";
import { Outcome } from "./outcome.js";
import { offline } from "./state.js";
import { shortened } from "./words.js";

const LABELS = { interrupt: "Interrupt", restart: "Restart", stop: "Stop", resume: "Resume", spawn: "Start" };
const ASKED_TWICE = new Set(["stop", "restart"]);

/** What can be done with an agent as it is. */
function verbsFor({ status }) {
  if (status === "running") return ["interrupt", "restart", "stop"];
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
    <button key=${verb} data-action=${verb} disabled=${offline.value !== ""} aria-label=${`${LABELS[verb]} ${name}`} onClick=${() => act(verb)}>${LABELS[verb]}</button>`);
  return html`<footer class="actions">
    ${card.status === "running" && html`<${SendField} name=${name} card=${card} place=${place} />`}
    <div class="row">
      ${asked ? html`<${AskOnce} verb=${asked} name=${name} yes=${() => act(asked)} no=${() => setAsked(null)} />` : buttons}
    </div>
    <${Outcome} outcome=${latestOutcome(card.agent)} />
  </footer>`;
}

function AskOnce({ verb, name, yes, no }) {
  const keep = useRef();
  useEffect(() => keep.current.focus(), []);
  return html`<span class="ask">${LABELS[verb]} ${name}?</span>
    <button class="danger" data-action=${`${verb}-confirm`} disabled=${offline.value !== ""} onClick=${yes}>${LABELS[verb]}</button>
    <button ref=${keep} data-action="keep" onClick=${no}>Keep</button>`;
}

function SendField({ name, card, place }) {
  const [idle, setIdle] = useState(false);
  const submit = (text) => send(place, `“${shortened(text, 40)}”`, { verb: "send", agent: card.agent, text, when: idle ? "idle" : "now" });
  return html`<${TextField} name="send" hint="Send a text…" label=${`Send a text to ${name}`} onSubmit=${submit}>${(sendNow) => html`
    <label class="when"><input type="checkbox" name="idle" checked=${idle} onChange=${() => setIdle(!idle)} />when idle</label>
    <button data-action="send" disabled=${offline.value !== ""} aria-label=${`Send to ${name}`} onClick=${sendNow}>Send<${Keycap}>s</${Keycap}></button>`}
  </${TextField}>`;
}
