// The day at a glance: one thin row per agent. uPlot has the time axis and the cursor; the rows are drawn into its canvas.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { ask } from "./connection.js";
import { html } from "./html.js";
import { openAgent } from "./route.js";
import { COLUMNS, columnName } from "./state.js";
import { theme } from "./appearance.js";
import { counted } from "./words.js";

const REFRESH_MS = 120_000;
const ROW_PX = 18, BAR_PX = 9, AXIS_PX = 24, NAMES_PX = 120, NAMES_NARROW_PX = 76;
const FIRST_ROWS = 12, MOST_ROWS = 24;   // rows at first; rows on screen when all are shown, the others scroll by
const SPANS_S = [1, 2, 4, 8, 12].map((hours) => hours * 3600);   // what is shown of a day that is shorter
const WEIGHTS = { needs_you: 5, trouble: 4, limited: 3, working: 2 };   // what makes a row worth its place

export function Day() {
  const [day, setDay] = useState(null);
  const [all, setAll] = useState(false);
  const section = useRef();
  useEffect(() => refreshWhileSeen(section.current, setDay), []);
  const names = day ? Object.keys(day.agents).sort(byName) : [];
  if (day && names.length === 0) return html`<section class="day" ref=${section} hidden></section>`;
  return html`<section class="day" ref=${section} aria-labelledby="day-title">
    <div class="day-head"><h2 id="day-title">${titleOf(day)}</h2>
      ${names.length > FIRST_ROWS && html`<button class="plain" data-action="all-rows" aria-expanded=${all} onClick=${() => setAll(!all)}>
        ${all ? `only ${FIRST_ROWS}` : `all ${names.length}`}</button>`}
      <span class="shares">${day && sharesOf(day).map(({ column, share }) => html`
        <span key=${column} class="share" data-status=${column}><i class="square"></i>${columnName(column).toLowerCase()} ${share} %</span>`)}</span></div>
    ${day ? html`<${Rows} day=${day} names=${all ? names : tellingNames(day, FIRST_ROWS)} />` : html`<div class="day-empty"></div>`}
  </section>`;
}

/** Asks for the day now and every two minutes, while the timeline is in view. */
function refreshWhileSeen(element, take) {
  let askedAt = -Infinity;
  let seen = false;
  const refresh = async () => {
    if (!seen || document.hidden || performance.now() - askedAt < REFRESH_MS) return;
    askedAt = performance.now();
    const { status, data } = await ask("/api/day");
    if (status === 200) take(fromFirstKnown(data));
    else askedAt = performance.now() - REFRESH_MS + 10_000;
  };
  const observer = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    refresh();
  });
  observer.observe(element);
  const timer = setInterval(refresh, 5000);
  return () => {
    observer.disconnect();
    clearInterval(timer);
  };
}

/** A young fleet's day begins with it: hours of which nothing is known would only be empty room. */
function fromFirstKnown(day) {
  const length = longestRow(day);
  const known = Object.values(day.agents).map((letters) => letters.search(/[^.]/)).filter((at) => at >= 0);
  const wanted = SPANS_S.map((seconds) => seconds / day.bucket_s).find((buckets) => buckets >= length - Math.min(...known)) ?? length;
  const left = Math.max(0, length - wanted);
  const agents = Object.fromEntries(Object.entries(day.agents).map(([name, letters]) => [name, letters.slice(left)]));
  const since = left > 0 && known.length ? day.start + Math.min(...known) * day.bucket_s : null;
  return { ...day, start: day.start + left * day.bucket_s, agents, since };
}

const titleOf = (day) => day?.since ? `Since ${timeText(day.since)}` : "Last 24 hours";

function columnsByLetter(day) {
  return new Map([...day.columns].map((letter, place) => [letter, COLUMNS[place]?.key]));
}

/** Those with the most to tell, in the order of their names, so that a refresh moves few rows. */
function tellingNames(day, most) {
  const byLetter = columnsByLetter(day);
  const weight = (letters) => [...letters].reduce((sum, letter) => sum + (WEIGHTS[byLetter.get(letter)] ?? 0), 0);
  const weighed = Object.entries(day.agents).map(([name, letters]) => ({ name, weight: weight(letters) }));
  weighed.sort((one, other) => other.weight - one.weight || byName(one.name, other.name));
  return weighed.slice(0, most).map(({ name }) => name).sort(byName);
}

const byName = new Intl.Collator("en", { numeric: true }).compare;

/** How much of the known time was spent in which column, in whole percent that add up to a hundred. */
function sharesOf(day) {
  const byLetter = columnsByLetter(day);
  const totals = new Map();
  let known = 0;
  for (const letters of Object.values(day.agents)) for (const letter of letters) {
    const column = byLetter.get(letter);
    if (!column) continue;
    known += 1;
    totals.set(column, (totals.get(column) ?? 0) + 1);
  }
  const exact = [...totals].map(([column, count]) => ({ column, share: Math.floor(100 * count / known), rest: (100 * count / known) % 1 }));
  const missing = 100 - exact.reduce((sum, { share }) => sum + share, 0);
  exact.sort((one, other) => other.rest - one.rest);
  const shares = exact.map(({ column, share }, at) => ({ column, share: share + (at < missing ? 1 : 0) }));
  return shares.filter(({ share }) => share > 0).sort((one, other) => other.share - one.share);
}

/** The letters of a row as runs `{column, from, to}` in seconds. */
function runsOf(day, name) {
  const byLetter = columnsByLetter(day);
  const letters = day.agents[name];
  const runs = [];
  for (let start = 0, end; start < letters.length; start = end) {
    for (end = start + 1; letters[end] === letters[start];) end += 1;
    const column = byLetter.get(letters[start]);
    if (column) runs.push({ column, from: day.start + start * day.bucket_s, to: day.start + end * day.bucket_s });
  }
  return runs;
}

function Rows({ day, names }) {
  const place = useRef();
  const tip = useRef();
  const shownRows = Math.min(names.length, MOST_ROWS);
  useEffect(() => drawDay(place.current, tip.current, day, names, shownRows), [day, names.length, theme.value]);
  return html`<div class="day-scroll" ref=${place}></div><div class="day-tip" ref=${tip} hidden></div>`;
}

/** Draws into `scroller`: the plot is as tall as what is seen and sticks, the rows move through it. Returns how to end it. */
function drawDay(scroller, tip, day, names, shownRows) {
  const rows = names.map((name) => ({ name, runs: runsOf(day, name) }));
  const height = shownRows * ROW_PX + AXIS_PX;
  const space = document.createElement("div");
  const holder = document.createElement("div");
  space.className = "day-space";
  holder.className = "day-plot";
  space.append(holder);
  scroller.replaceChildren(space);
  scroller.style.height = holder.style.height = `${height}px`;
  space.style.height = `${rows.length * ROW_PX + AXIS_PX}px`;
  scroller.setAttribute("role", "img");
  scroller.setAttribute("aria-label", `The last ${counted(Math.round((endOf(day) - day.start) / 3600), "hour")} of ${counted(rows.length, "agent")}`);

  const plot = new uPlot(plotOptions(scroller, tip, day, rows, height), [[day.start, endOf(day)], [0, 0]], holder);
  const redraw = () => plot.redraw(false);
  const resize = new ResizeObserver(() => plot.setSize({ width: space.clientWidth, height }));
  resize.observe(space);
  scroller.addEventListener("scroll", redraw, { passive: true });
  scheme.addEventListener("change", redraw);
  return () => {
    resize.disconnect();
    scroller.removeEventListener("scroll", redraw);
    scheme.removeEventListener("change", redraw);
    plot.destroy();
    tip.hidden = true;
  };
}

const scheme = matchMedia("(prefers-color-scheme: dark)");
const longestRow = (day) => Math.max(1, ...Object.values(day.agents).map((letters) => letters.length));
const endOf = (day) => day.start + longestRow(day) * day.bucket_s;

function plotOptions(scroller, tip, day, rows, height) {
  const namesWidth = scroller.clientWidth < 600 ? NAMES_NARROW_PX : NAMES_PX;
  return {
    width: scroller.clientWidth, height, padding: [0, 14, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: true, range: () => [day.start, endOf(day)] }, y: { range: () => [0, 1] } },
    series: [{}, { show: false }],
    axes: [
      { size: AXIS_PX, gap: 4, font: canvasFont(10.5), stroke: () => token("--faint"), grid: { show: false }, ticks: { show: false },
        incrs: [600, 1800, 3600, 7200, 14_400, 21_600], space: 56, values: (_, times) => times.map(timeText) },
      { size: namesWidth, values: () => [], grid: { show: false }, ticks: { show: false } },
    ],
    hooks: {
      draw: [(plot) => drawRows(plot, rows, scroller.scrollTop, namesWidth)],
      setCursor: [(plot) => showTip(plot, tip, rows, scroller)],
      ready: [(plot) => plot.over.addEventListener("click", () => {
        const row = rowUnder(plot, rows, scroller);
        if (row) openAgent(row.name);
      })],
    },
  };
}

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const canvasFont = (px) => `${px}px ${token("--sans")}`;
const timeText = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 5);

function drawRows(plot, rows, scrolled, namesWidth) {
  const { ctx: pen, bbox: { left, top, width, height } } = plot;
  const ratio = devicePixelRatio;
  const colours = Object.fromEntries(COLUMNS.map(({ key }) => [key, token(key === "waiting" ? "--idle" : `--${key}`)]));
  const first = Math.floor(scrolled / ROW_PX);
  const last = Math.min(rows.length, first + Math.ceil(height / ratio / ROW_PX) + 1);
  pen.save();
  pen.beginPath();
  pen.rect(0, top, left + width, height);
  pen.clip();
  pen.font = `${11 * ratio}px ${token("--sans")}`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (let at = first; at < last; at += 1) {
    const middle = top + (at * ROW_PX + ROW_PX / 2 - scrolled) * ratio;
    pen.fillStyle = token("--muted");
    pen.fillText(cut(pen, rows[at].name, (namesWidth - 10) * ratio), 0, middle);
    for (const { column, from, to } of rows[at].runs) {
      const x = plot.valToPos(from, "x", true);
      pen.fillStyle = colours[column];
      pen.fillRect(x, middle - BAR_PX * ratio / 2, Math.max(ratio, plot.valToPos(to, "x", true) - x), BAR_PX * ratio);
    }
  }
  pen.restore();
}

/** The text, with an ellipsis in its middle where it is wider than the room: names often differ at their ends. */
function cut(pen, text, room) {
  let short = text;
  for (let kept = text.length - 1; kept > 1 && pen.measureText(short).width > room; kept -= 1) {
    short = `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
  }
  return short;
}

function rowUnder(plot, rows, scroller) {
  return rows[Math.floor((plot.cursor.top + scroller.scrollTop) / ROW_PX)];
}

function showTip(plot, tip, rows, scroller) {
  const { left, top } = plot.cursor;
  const row = left >= 0 && top >= 0 ? rowUnder(plot, rows, scroller) : null;
  tip.hidden = !row;
  if (!row) return;
  tip.textContent = tipText(row, plot.posToVal(left, "x"));
  const x = left + plot.over.offsetLeft;
  tip.style.transform = `translate(min(${x}px, calc(${scroller.clientWidth}px - 100%)), ${top - 30}px)`;
}

function tipText({ name, runs }, time) {
  const run = runs.find(({ from, to }) => from <= time && time < to);
  if (!run) return `${name} · nothing known · ${timeText(time)}`;
  return `${name} · ${columnName(run.column).toLowerCase()} · ${timeText(run.from)}–${timeText(run.to)}`;
}
