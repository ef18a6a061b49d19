// The row of actions in the drawer, and the line that says what became of the last one.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { latestOutcome, send } from "./commands.js";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";
import { Outcome } from "./outcome.js";

/** "send" or "comment": the field that a key asked for. The field takes the focus and clears it. */
export const focusWanted = signal(null);

export function useWantedFocus(which, field) {
  useEffect(() => {
    if (focusWanted.value !== which) return;
    focusWanted.value = null;
    field.current?.focus();
  }, [focusWanted.value]);
}

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
  return html`<footer class="actions">
    ${card.status === "running" && html`<${SendField} card=${card} place=${place} />`}
    <div class="row">
      ${asked ? html`<${AskOnce} verb=${asked} name=${name} yes=${() => act(asked)} no=${() => setAsked(null)} />`
        : verbsFor(card).map((verb) => html`<button key=${verb} data-action=${verb} aria-label=${`${LABELS[verb]} ${name}`} onClick=${() => act(verb)}>${LABELS[verb]}</button>`)}
    </div>
    <${Outcome} outcome=${latestOutcome(card.agent)} />
  </footer>`;
}

function AskOnce({ verb, name, yes, no }) {
  const keep = useRef();
  useEffect(() => keep.current.focus(), []);
  return html`<span class="ask">${LABELS[verb]} ${name}?</span>
    <button class="danger" data-action=${`${verb}-confirm`} onClick=${yes}>${LABELS[verb]}</button>
    <button ref=${keep} data-action="keep" onClick=${no}>Keep</button>`;
}

function SendField({ card, place }) {
  const [text, setText] = useState("");
  const [idle, setIdle] = useState(false);
  const field = useRef();
  useWantedFocus("send", field);
  const submit = async () => {
    if (!text.trim()) return;
    const taken = await send(place, `“${shortened(text)}”`, { verb: "send", agent: card.agent, text, when: idle ? "idle" : "now" });
    if (taken) setText((current) => current === text ? "" : current);
  };
  return html`<div class="send">
    <textarea ref=${field} name="send" rows=${Math.min(6, text.split("\n").length)} placeholder="Send a text…" aria-label=${`Send a text to ${card.card}`} value=${text}
      onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => submitOnEnter(event, submit)}></textarea>
    <label class="when"><input type="checkbox" name="idle" checked=${idle} onChange=${(event) => setIdle(event.target.checked)} />when idle</label>
    <button data-action="send" aria-label=${`Send to ${card.card}`} onClick=${submit}>Send<${Keycap}>s</${Keycap}></button>
  </div>`;
}

/** Enter submits, with Shift it is a new line; not while an input method composes. */
export function submitOnEnter(event, submit) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
}

function shortened(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 40 ? `${line.slice(0, 39)}…` : line;
}
