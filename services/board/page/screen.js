// An agent's terminal in colour: always dark, scaled to the room there is, down to a size that can still be read.
import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "./html.js";
import { offline, screen } from "./state.js";

const LARGEST_PX = 12.5, SMALLEST_PX = 8, PADDING_PX = 24;

export function Screen({ agent, lastWords }) {
  const shown = screen.value?.agent === agent ? screen.value : null;
  const place = useRef();
  const width = shown?.width ?? 80;
  useLayoutEffect(() => {
    const fit = () => { place.current.style.fontSize = `${fontSize(place.current.clientWidth - PADDING_PX, width)}px`; };
    const observer = new ResizeObserver(fit);
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [width]);
  return html`<div class="terminal" ref=${place} tabindex="0" role="group" aria-label=${`Screen of ${agent}`} data-screen=${agent}>
    ${!shown && html`<p class="terminal-said">${offline.value ? "No screen while this page is offline." : "Loading the screen…"}</p>`}
    ${shown?.said && lastWords && html`<p class="last-words"><span class="terminal-said">Last words: </span>${lastWords}</p>`}
    ${shown?.said && html`<p class="terminal-said">${shown.said}</p>`}
    ${shown && !shown.said && shown.rows.map((row, at) => html`<div class="terminal-row" key=${at}>
      ${row.map(([text, style]) => html`<${Run} text=${text} look=${shown.styles[style]} />`)}</div>`)}
  </div>`;
}

/** The largest size at which `columns` characters fit. */
function fontSize(room, columns) {
  return Math.max(SMALLEST_PX, Math.min(LARGEST_PX, room / (columns * characterWidth())));
}

let measured = 0;
/** The width of a character of the terminal's font, at 1 px. */
function characterWidth() {
  if (!measured) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `100px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
    measured = pen.measureText("m").width / 100;
  }
  return measured;
}

const FLAGS = ["bold", "dim", "italic", "underline", "strike"];

function Run({ text, look }) {
  if (!look || Object.keys(look).length === 0) return text;
  const [front, back] = look.reverse ? [look.b ?? "page", look.f ?? "text"] : [look.f, look.b];
  const names = FLAGS.filter((flag) => look[flag]).concat(named("f", front), named("b", back));
  return html`<span class=${names.join(" ")} style=${{ color: exact(front), backgroundColor: exact(back) }}>${text}</span>`;
}

/** A numbered colour, or one of the terminal's own two, is a class: the style sheet has its shade. */
const named = (kind, colour) => typeof colour === "number" || colour === "page" || colour === "text" ? [`${kind}-${colour}`] : [];
const exact = (colour) => typeof colour === "string" && colour.startsWith("#") ? colour : undefined;
