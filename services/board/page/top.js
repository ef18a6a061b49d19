// The bar: which fleet, is all well, how many where, how far the loops are, search, lock, theme, help.
import { ThemeButton } from "./appearance.js";
import { offerUnlock } from "./commands.js";
import { now } from "./clock.js";
import { helpOpen } from "./help.js";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";
import { isDown, troubledServices } from "./notices.js";
import { placed } from "./placement.js";
import { COLUMNS, counts, filter, fleet, loops, offline, query, session } from "./state.js";
import { clockTime, counted } from "./words.js";

export function Top() {
  return html`<header class="bar">
    <div class="bar-left">
      <${Brand} /><${Health} /><${Pills} /><${Loops} />
    </div>
    <div class="bar-right">
      <${Search} /><${Lock} /><${ThemeButton} />
      <${HelpButton} />
    </div>
  </header>`;
}

function Brand() {
  const { name, host } = fleet.value ?? { name: session.value?.fleet ?? "", host: session.value?.host ?? "" };
  return html`<h1 class="brand">
    <b>Muster</b><span class="slash">/</span><span class="fleet">${name}</span><span class="host">${host}</span>
  </h1>`;
}

function Health() {
  const known = fleet.value;
  if (!known) return null;
  if (offline.value) return html`<div class="health"><${Dot} state="unknown" word="broker" title=${UNKNOWN} /><${Dot} state="unknown" word="services" title=${UNKNOWN} /></div>`;
  const { broker, services } = known;
  if (isDown(known)) return html`<div class="health"><${Dot} state="bad" word="down" title="The supervisor does not run" /></div>`;
  const troubled = troubledServices(known);
  const all = `${counted(services.length, "service")} ${broker.up ? "online" : "without a broker"}`;
  return html`<div class="health">
    <${Dot} state=${broker.up ? "good" : "bad"} word="broker" title=${`Broker ${broker.said}`} />
    ${troubled.length === 0 && html`<${Dot} state=${broker.up ? "good" : "so-so"} word="services" title=${all} />`}
    ${troubled.map(({ name, status, said }) => html`
      <${Dot} key=${name} state=${HALF_WELL.has(status) ? "so-so" : "bad"} word=${`${name} ${status}`} title=${said} />`)}
  </div>`;
}

const UNKNOWN = "Not known while this page is offline";
const HALF_WELL = new Set(["degraded", "alone"]);
const Dot = ({ state, word, title }) => html`<span class="state" title=${title}><i class="dot" data-state=${state}></i>${word}</span>`;

function Pills() {
  return html`<div class="pills" role="group" aria-label="Filter by column">
    ${COLUMNS.map(({ key, name }) => html`<${Pill} key=${key} column=${key} name=${name} />`)}
    <${Pill} key="all" column="all" name="All" />
  </div>`;
}

function Pill({ column, name }) {
  const pressed = column === "all" ? filter.value === null : filter.value === column;
  const choose = () => { filter.value = column === "all" || pressed ? null : column; };
  const count = counts.value[column] ?? (placed.value ? 0 : "–");
  return html`<button class="pill" data-status=${column} data-count=${column} data-some=${count > 0} aria-pressed=${pressed} onClick=${choose}>
    ${column !== "all" && html`<i class="square"></i>`}${name}<b>${count}</b>
  </button>`;
}

function Loops() {
  if (!loops.value.length) return null;
  return html`<div class="loops">${loops.value.map((loop) => html`<${Loop} key=${loop.loop} loop=${loop} />`)}</div>`;
}

function Loop({ loop }) {
  const title = `${loop.said}${loop.waits ? "; waits for you: muster phase next" : ""}`;
  return html`<span class="loop" role="img" aria-label=${`loop ${loop.loop}: ${title}`} title=${title} data-loop=${loop.loop}>
    <span class="loop-name">loop ${loop.loop}</span>
    ${loop.phases.map(({ name, state }) => html`<i key=${name} class="phase" title=${`${name}: ${state}`}
      data-state=${state} data-waits=${loop.waits && state === "current"}></i>`)}
    ${loop.waits && html`<span class="loop-waits">waits for you</span>`}
  </span>`;
}

const SEARCH = "Search agents, text, branches";

function Search() {
  const leave = (event) => {
    if (event.key !== "Escape") return;
    query.value = "";
    event.target.blur();
    event.stopPropagation();
  };
  return html`<div class="search">
    <input id="search" type="search" placeholder=${SEARCH} aria-label=${SEARCH} autocomplete="off" spellcheck=${false}
      value=${query.value} onInput=${(event) => { query.value = event.target.value; }} onKeyDown=${leave} />
    <${Keycap}>/</${Keycap}>
  </div>`;
}

function Lock() {
  const { may_act: mayAct, acts_until: until } = session.value ?? {};
  const words = mayAct ? `may act${until ? ` until ${clockTime(until, now())}` : ""}` : "looking only";
  const title = mayAct ? "Lock this page" : "Unlock this page for actions";
  return html`<button class="lock" data-locked=${!mayAct} title=${title} onClick=${() => offerUnlock()}>${words}</button>`;
}

function HelpButton() {
  const open = () => { helpOpen.value = true; };
  return html`<button class="icon help" aria-label="Keys and help" title="Keys and help" onClick=${open}><${Keycap}>?</${Keycap}></button>`;
}
