// The help window: every key.
import { signal } from "@preact/signals";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";

export const helpOpen = signal(false);

const KEYS = [
  [["/"], "search"],
  [["↑", "↓", "←", "→"], "move between questions and cards"],
  [["enter", "o"], "open the card"],
  [["a"], "approve"],
  [["d"], "deny"],
  [["1", "…", "9"], "choose an option of the question"],
  [["s"], "send a text"],
  [["c"], "comment"],
  [["t"], "theme: auto, light, dark"],
  [["esc"], "back"],
];

export function Help() {
  if (!helpOpen.value) return null;
  return html`<${Dialog} title="Keys" onClose=${() => { helpOpen.value = false; }}>
    <dl class="keys">${KEYS.map(([keys, does]) => html`<div key=${does}>
      <dt>${keys.map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${does}</dd>
    </div>`)}</dl>
    <p class="quiet">Answers go to the focused question, else to the open agent's.
      With nothing focused, <kbd>a</kbd> and <kbd>d</kbd> answer the first one.</p>
    <p class="quiet">Comment <code>stop</code> on a card to stop monitoring it, <code>resume</code> to go on.</p>
  </${Dialog}>`;
}
