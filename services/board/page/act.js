// A button that asks for something. Offline it does nothing; on a page that only looks it looks locked, and offers to unlock.
import { useArmed } from "./arming.js";
import { html } from "./html.js";
import { locked, offline } from "./state.js";

export const ARM_MS = 600;   // longer than a double click
const LOCKED = "this page only looks: unlock to act";

export function ActButton({ ready = true, title, children, ...rest }) {
  return html`<button ...${rest} data-acts disabled=${!ready || offline.value !== ""} title=${locked.value ? LOCKED : title}>${children}</button>`;
}

/** One that takes the place of another: a double click on the old one must not press it. */
export function FreshButton(props) {
  return html`<${ActButton} ...${props} ready=${useArmed("shown", ARM_MS)} />`;
}

export const LockedWord = () => locked.value && html`<span class="locked-word" title=${LOCKED}>locked</span>`;
