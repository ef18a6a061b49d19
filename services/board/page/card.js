// A card answers four questions in four lines: who, what and for how long, its current line, where.
import { useComputed } from "@preact/signals";
import { Ticking, now, since } from "./clock.js";
import { html } from "./html.js";
import { address, route } from "./route.js";
import { agents, columnName } from "./state.js";
import { unread } from "./unread.js";
import { age, dotted, limitText, span } from "./words.js";

// These change their line all the time: they keep the room for it, so that nothing below them jumps.
const LIVELY = new Set(["working", "waiting", "starting"]);

export function Card({ name }) {
  const { card: { value: card }, line } = agents.get(name);
  // Computed, so that a card renders again only when its own answer changes.
  const news = useComputed(() => unread(agents.get(name)?.card.value)).value;
  const open = useComputed(() => route.value?.name === name).value;
  const label = `${name}, ${columnName(card.column).toLowerCase()}: ${card.headline}${news ? `, ${news} unread` : ""}`;
  return html`<a class="card" href=${address(name)} aria-label=${label} aria-current=${open ? "true" : undefined}
      data-card=${name} data-status=${card.column} data-monitoring=${card.monitoring}>
    <div class="who">
      <b>${name}</b><span class="role">${card.role}</span><${Ticking} class="age" text=${() => age(since(card.since))} />
    </div>
    <${Headline} card=${card} />
    ${card.monitoring ? html`<${Line} line=${line} lastWords=${card.last_words} lively=${LIVELY.has(card.column)} />` : html`<${NotMonitored} card=${card} />`}
    <div class="where">
      <span>${dotted(card.backend, card.model, card.branch)}</span>
      ${news > 0 && html`<span class="unread" title=${`${news} unread`}>${news}</span>`}
    </div>
  </a>`;
}

function Headline({ card }) {
  if (card.column === "limited" && (card.resumes || card.limit_resets)) {
    return html`<${Ticking} class="headline" title=${card.reason} text=${() => limitText(card, now())} />`;
  }
  return html`<div class="headline" title=${card.reason}>${card.headline}</div>`;
}

/** Apart from the card, since it changes most: only this node renders then. */
function Line({ line, lastWords, lively }) {
  const text = line.value || lastWords;
  if (!text && !lively) return null;
  return html`<div class="line" title=${line.value ? undefined : lastWords}>${text}</div>`;
}

function NotMonitored({ card }) {
  const by = card.stopped_by ? ` by ${card.stopped_by}` : "";
  const when = () => card.stopped_at ? ` ${span(since(card.stopped_at))} ago` : "";
  return html`<${Ticking} class="not-monitored" text=${() => `not monitored · stopped${by}${when()}`} />`;
}
