// The columns from bad to good; an empty one is only a narrow header.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Card } from "./card.js";
import { html } from "./html.js";
import { layout, placed, strip } from "./placement.js";
import { slideFromRecorded } from "./slides.js";
import { agents, counts, filter, query } from "./state.js";

export function Columns() {
  const lists = layout.value;
  const rendered = useRef(new Map());
  useLayoutEffect(slideFromRecorded, [lists]);
  if (!placed.value) return html`<${Skeleton} />`;
  if (lists.every(({ count }) => count === 0)) return html`<${Nothing} />`;
  const shown = lists.filter(({ column, count }) => count > 0 || (column.key !== "needs_you" && !filter.value));
  return html`<section class="columns" aria-label="Agents by column">${shown.map((list) => once(rendered.current, list))}</section>`;
}

/** The same list gives the same node, which is not rendered again. */
function once(rendered, list) {
  const known = rendered.get(list.column.key);
  if (known?.list === list) return known.node;
  const node = html`<${Column} key=${list.column.key} list=${list} />`;
  rendered.set(list.column.key, { list, node });
  return node;
}

const STEP = 20;

/** Hundreds of new cards come in steps, one per frame: none takes so long that the page stutters. */
function useGrowingLimit(count) {
  const [limit, setLimit] = useState(STEP);
  useEffect(() => {
    if (limit >= count) return setLimit(Math.min(limit, count + STEP));
    const frame = requestAnimationFrame(() => setLimit(limit + STEP));
    return () => cancelAnimationFrame(frame);
  }, [limit, count]);
  return limit;
}

function Column({ list }) {
  const { column, groups, count } = list;
  const limit = useGrowingLimit(count);
  return html`<section class="column" data-column=${column.key} data-status=${column.key} data-empty=${count === 0} aria-labelledby=${`column-${column.key}`}>
    <h2 id=${`column-${column.key}`}><i class="square"></i><span class="column-name">${column.name}</span><span class="column-count">${count}</span></h2>
    ${count > 0 && html`<div class="cards">${groups.flatMap(cardsOfGroup).slice(0, limit)}</div>`}
  </section>`;
}

function cardsOfGroup({ label, names }) {
  const cards = names.filter((name) => agents.has(name)).map((name) => html`<${Card} key=${name} name=${name} />`);
  return label ? [html`<h3 class="group" key=${`group ${label}`}>${label}</h3>`, ...cards] : cards;
}

function Nothing() {
  if (query.value || filter.value) {
    const clear = () => { query.value = ""; filter.value = null; };
    return html`<section class="columns nothing"><p data-empty="filter">${nothingText()}</p><button onClick=${clear}>Show all</button></section>`;
  }
  if (counts.value.all) return html`<section class="columns nothing"><p>Every agent waits for you.</p></section>`;
  return html`<section class="columns nothing"><p data-empty="fleet">No agents yet: add one to <code>fleet.yaml</code>, it appears here at once.</p></section>`;
}

function nothingText() {
  if (!query.value) return strip.value.length ? "No other agent needs you." : "No agent is here now.";
  return `No ${strip.value.length ? "other " : ""}agent matches “${query.value}”.`;
}

const Skeleton = () => html`<section class="columns skeleton" aria-busy="true" aria-label="Loading">
  ${[3, 1, 2, 2].map((cards) => html`<div class="column"><h2></h2><div class="cards">${Array.from({ length: cards }, () => html`<div class="card"></div>`)}</div></div>`)}
</section>`;
