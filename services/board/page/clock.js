// One clock for the page: it follows the server's, and ticks every text that shows an age without a render.
import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "./html.js";

const DRIFT_MS = 1500;   // less than this is the way of the message, not the clock
const ticking = new Set();
let ahead = 0;

export const now = () => Date.now() + ahead;

export function followServer(iso) {
  const measured = Date.parse(iso) - Date.now();
  if (Math.abs(measured - ahead) > DRIFT_MS) ahead = measured;
}

export const since = (iso) => now() - Date.parse(iso);

/** A text that depends on the time: `text` is asked each second, and only the text node changes. */
export function Ticking({ text, ...attributes }) {
  const place = useRef();
  const latest = useRef(text);
  latest.current = text;
  useLayoutEffect(() => write(place.current, latest.current()));
  useLayoutEffect(() => {
    const tick = () => write(place.current, latest.current());
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
  return html`<span ref=${place} ...${attributes}></span>`;
}

function write(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

setInterval(() => {
  if (!document.hidden) for (const tick of ticking) tick();
}, 1000);
