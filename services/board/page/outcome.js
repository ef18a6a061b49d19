// A line that says what became of an action.
import { Ticking, now } from "./clock.js";
import { isFinal, outcomeMark, outcomeText } from "./commands.js";
import { html } from "./html.js";
import { span } from "./words.js";

export function Outcome({ outcome }) {
  if (!outcome) return html`<p class="outcome"></p>`;
  const text = outcomeText(outcome);
  return html`<p class="outcome" data-outcome=${outcome.state} title=${text}>
    <span class="mark" aria-hidden="true">${outcomeMark(outcome)}</span>${text}
    ${isFinal(outcome) && html`<${Ticking} class="ago" text=${() => agoText(outcome)} />`}
  </p>`;
}

const agoText = ({ at }) => now() - at < 5000 ? "" : ` ${span(now() - at)} ago`;
