// The bar: which fleet, is all well, how many where, how far the loops are, search, lock, theme, help.
import { signal } from "@preact/signals";
import { offerUnlock } from "./commands.js";
import { now } from "./clock.js";
import { helpOpen } from "./help.js";
import { html } from "./html.js";
import { Keycap } from "./keycap.js";
import { troubledServices } from "./notices.js";
import { COLUMNS, counts, filter, fleet, loops, query, session } from "./state.js";
import { clockTime, counted } from "./words.js";

export function Top() {
  return html`<header class="bar">
    <div class="bar-left">
      <${Brand} /><${Health} /><${Pills} /><${Loops} />
    </div>
    <div class="bar-right">
      <${Search} /><${Lock} /><${ThemeButton} />
      <button class="icon help" aria-label="Keys and help" title="Keys and help" onClick=${() => { helpOpen.value = true; }}><${Keycap}>?</${Keycap}></button>
    </div>
  </header>`;
}

function Brand() {
  const { name, host } = fleet.value ?? { name: session.value?.fleet ?? "", host: session.value?.host ?? "" };
  return html`<h1 class="brand"><b>Muster</b><span class="slash">/</span><span class="fleet">${name}</span><span class="host">${host}</span></h1>`;
}

function Health() {
  const known = fleet.value;
  if (!known) return null;
  const troubled = troubledServices(known);
  return html`<div class="health">
    <${Dot} state=${known.broker.up ? "good" : "bad"} word="broker" title=${`Broker ${known.broker.said}`} />
    ${troubled.length === 0 && html`<${Dot} state=${known.broker.up ? "good" : "so-so"} word="services" title=${`${counted(known.services.length, "service")} online`} />`}
    ${troubled.map(({ name, status, said }) => html`<${Dot} key=${name} state=${status === "degraded" || status === "alone" ? "so-so" : "bad"} word=${`${name} ${status}`} title=${said} />`)}
  </div>`;
}

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
  const count = counts.value[column] ?? 0;
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
    ${loop.phases.map(({ name, state }) => html`<i key=${name} class="phase" data-state=${state} data-waits=${loop.waits && state === "current"} title=${`${name}: ${state}`}></i>`)}
    ${loop.waits && html`<span class="loop-waits">waits for you</span>`}
  </span>`;
}

function Search() {
  const leave = (event) => {
    if (event.key !== "Escape") return;
    query.value = "";
    event.target.blur();
    event.stopPropagation();
  };
  return html`<div class="search">
    <input id="search" type="search" placeholder="Search agents, text, branches" aria-label="Search agents, text, branches" autocomplete="off" spellcheck=${false}
      value=${query.value} onInput=${(event) => { query.value = event.target.value; }} onKeyDown=${leave} />
    <${Keycap}>/</${Keycap}>
  </div>`;
}

function Lock() {
  const { may_act: mayAct, acts_until: until } = session.value ?? {};
  const words = mayAct ? `may act${until ? ` until ${clockTime(until, now())}` : ""}` : "looking only";
  return html`<button class="lock" data-locked=${!mayAct} title=${mayAct ? "Lock this page" : "Unlock this page for actions"} onClick=${() => offerUnlock()}>${words}</button>`;
}

const THEMES = { auto: "◐", light: "○", dark: "●" };
export const theme = signal(document.documentElement.dataset.theme ?? "auto");

export function nextTheme() {
  const names = Object.keys(THEMES);
  theme.value = names[(names.indexOf(theme.value) + 1) % names.length];
  if (theme.value === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("muster-theme");
  } else {
    document.documentElement.dataset.theme = theme.value;
    localStorage.setItem("muster-theme", theme.value);
  }
}

function ThemeButton() {
  return html`<button class="icon" aria-label=${`Theme: ${theme.value}`} title=${`Theme: ${theme.value} (t)`} onClick=${nextTheme}>${THEMES[theme.value]}</button>`;
}
