// A text field that grows with its lines: Enter submits, Shift and Enter is a new line.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { offline } from "./state.js";

const MOST_LINES = 6;

/** The name of the field that a key asked for. The field takes the focus and clears it. */
export const focusWanted = signal(null);

/**
 * @param {{name: string, hint: string, label: string, onSubmit: (text: string) => Promise<boolean>, children: (submit: () => void) => any}} props
 *   the text stays in the field until `onSubmit` says that it was taken.
 */
export function TextField({ name, hint, label, onSubmit, children }) {
  const [text, setText] = useState("");
  const field = useRef();
  useEffect(() => {
    if (focusWanted.value !== name) return;
    focusWanted.value = null;
    field.current.focus();
  }, [focusWanted.value]);
  const submit = async () => {
    if (text.trim() && !offline.value && await onSubmit(text)) setText((current) => current === text ? "" : current);
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  return html`<div class="send">
    <textarea ref=${field} name=${name} rows=${Math.min(MOST_LINES, text.split("\n").length)} placeholder=${hint} aria-label=${label}
      value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${onKeyDown}></textarea>
    ${children(submit)}
  </div>`;
}
