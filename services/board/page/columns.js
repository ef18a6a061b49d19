// The columns from bad to good; an empty one is only its header.
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
  const alone = shown.length === 1;
  return html`<section class="columns" aria-label="Agents by column" data-alone=${alone}>
    ${shown.map((list) => once(rendered.current, list, alone))}
  </section>`;
}

/** The same list gives the same node, which is not rendered again. */
function once(rendered, list, alone) {
  const known = rendered.get(list.column.key);
  if (known?.list === list && known.alone === alone) return known.node;
  const node = html`<${Column} key=${list.column.key} list=${list} alone=${alone} />`;
  rendered.set(list.column.key, { list, alone, node });
  return node;
}

const STEP = 12;
const LONG = 12;   // more cards than these scroll inside their column; fewer never do, and the page scrolls

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

function Column({ list, alone }) {
  const { column, groups, count } = list;
  const limit = useGrowingLimit(count);
  const heading = `column-${column.key}`;
  return html`<section class="column" data-column=${column.key} data-status=${column.key} data-empty=${count === 0} aria-labelledby=${heading}>
    <h2 id=${heading}>
      <i class="square"></i><span class="column-name">${column.name}</span><span class="column-count">${count}</span>
    </h2>
    ${count > 0 && html`<div class="cards" data-long=${count > LONG && !alone}>${groups.flatMap(cardsOfGroup).slice(0, limit)}</div>`}
  </section>`;
}

function cardsOfGroup({ label, names }) {
  const cards = names.filter((name) => agents.has(name)).map((name) => html`<${Card} key=${name} name=${name} />`);
  return label ? [html`<h3 class="group" key=${`group ${label}`}>${label}</h3>`, ...cards] : cards;
}

/** No card to show: says why, and what to do next. */
function Nothing() {
  return html`<section class="columns nothing">${query.value || filter.value ? html`<${NoMatch} />` : html`<${NoCards} />`}</section>`;
}

function NoMatch() {
  const other = strip.value.length ? "other " : "";
  const clear = () => { query.value = ""; filter.value = null; };
  return html`<p data-nothing="filter">${query.value ? `No ${other}agent matches “${query.value}”.` : `No ${other}agent is here now.`}</p>
    <button data-action="clear" onClick=${clear}>Show all</button>`;
}

function NoCards() {
  if (counts.value.all) return html`<p data-nothing="columns">Every agent waits for you.</p>`;
  return html`<p data-nothing="fleet">No agents yet: add one to <code>fleet.yaml</code>, it appears here at once.</p>`;
}

const SKELETON = [1, 1, 3, 2, 0, 1, 1];
const Skeleton = () => html`<section class="columns skeleton" aria-busy="true" aria-label="Loading">
  ${SKELETON.map((cards) => html`<div class="column" data-empty=${cards === 0}>
    <h2></h2><div class="cards">${Array.from({ length: cards }, () => html`<div class="card"></div>`)}</div>
  </div>`)}
</section>`;
