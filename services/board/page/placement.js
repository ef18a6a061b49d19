// Where each card stands: in the strip or in a column. Moves are collected, and made when nothing is held.
import { batch, effect, signal, untracked } from "@preact/signals";
import { announce } from "./announcer.js";
import { isFinal, outcomes } from "./commands.js";
import { now } from "./clock.js";
import { notices, shownNotices } from "./notices.js";
import { recordPositions } from "./slides.js";
import { COLUMNS, agents, filter, forgetGone, loops, matches, onMembershipChange, query } from "./state.js";
import { cardsHeld, stripHeld } from "./stillness.js";
import { counted } from "./words.js";

const SETTLE_MS = 120;        // moves are made at most this often
const OUTCOME_MS = 4000;      // so long an answered question stays, for its outcome to be read

/** Panels of the strip: `{key, name, question, gone}`, in the order in which they came. */
export const strip = signal([]);
/** Per column `{column, groups: [{label, names}], count, key}`; a list that did not change keeps its identity. */
export const layout = signal(COLUMNS.map((column) => ({ column, groups: [], count: 0, key: "" })));
/** False until the first whole board is placed. */
export const placed = signal(false);

export const questionKey = (name, question) => `${name} ${question.fingerprint}`;

/** A question is shown in the strip; with monitoring stopped its card stays in a column. */
const asksInStrip = (card) => card.column === "needs_you" && card.question !== null && card.monitoring;

let timer = 0;
let settledAt = -Infinity;

function settleSoon(atLeast = 0) {
  if (timer) return;
  timer = setTimeout(settle, Math.max(atLeast, settledAt + SETTLE_MS - performance.now()));
}

function settle() {
  timer = 0;
  if (cardsHeld()) settleSoon(SETTLE_MS);
  else settleNow();
}

function settleNow() {
  clearTimeout(timer);
  timer = 0;
  settledAt = performance.now();
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const panels = nextPanels(words);
  const lists = nextLists(words);
  recordPositions();
  batch(() => {
    strip.value = panels;
    if (lists.some((list, place) => list !== layout.value[place])) layout.value = lists;
    shownNotices.value = notices.value;
    placed.value = true;
  });
  forgetGone();
  if (panels.some((panel) => panel.gone)) settleSoon(SETTLE_MS);
}

function nextPanels(words) {
  if (filter.value && filter.value !== "needs_you") return [];
  const asking = new Map();
  for (const [name, { card, gone }] of agents) {
    const { question } = card.peek();
    if (!gone && asksInStrip(card.peek()) && matches(name, words)) asking.set(questionKey(name, question), { name, question });
  }
  const kept = strip.value.flatMap((panel) => {
    const current = asking.get(panel.key);
    asking.delete(panel.key);
    if (current) return current.question === panel.question && !panel.gone ? [panel] : [{ ...panel, ...current, gone: false }];
    return stripHeld() || answeredJustNow(panel.key) ? [{ ...panel, gone: true }] : [];
  });
  const added = [...asking].map(([key, { name, question }]) => ({ key, name, question, gone: false }));
  added.sort((one, other) => one.question.since < other.question.since ? -1 : 1);
  tellNew(added);
  return [...kept, ...added];
}

function answeredJustNow(key) {
  const outcome = outcomes.value.get(key);
  return outcome !== undefined && (!isFinal(outcome) || now() - outcome.at < OUTCOME_MS);
}

function tellNew(panels) {
  if (panels.length === 1) announce(`${panels[0].name} needs you: ${panels[0].question.reason}`);
  else if (panels.length) announce(`${counted(panels.length, "agent")} need you`);
}

function nextLists(words) {
  const names = new Map(COLUMNS.map(({ key }) => [key, []]));
  for (const [name, { card, gone }] of agents) {
    const { column } = card.peek();
    if (gone || asksInStrip(card.peek()) || (filter.value && filter.value !== column)) continue;
    if (matches(name, words)) names.get(column)?.push(name);
  }
  return COLUMNS.map((column, place) => {
    const list = toList(column, names.get(column.key));
    return list.key === layout.value[place].key ? layout.value[place] : list;
  });
}

/** By loop, role and name: an order that no change of status disturbs. */
function toList(column, names) {
  const cards = names.map((name) => {
    const { loop, role } = agents.get(name).card.peek();
    return { name, loop: loop ?? "", role: role ?? "" };
  });
  cards.sort((one, other) => compare(one.loop, other.loop) || compare(one.role, other.role) || compare(one.name, other.name));
  const groups = [];
  for (const { name, loop } of cards) {
    const label = loop ? `loop ${loop}` : "no loop";
    if (groups.at(-1)?.label === label) groups.at(-1).names.push(name);
    else groups.push({ label, names: [name] });
  }
  const labelled = groups.length > 1 && loops.peek().length > 0;
  if (!labelled) for (const group of groups) group.label = "";
  const key = groups.flatMap((group) => [group.label, ...group.names]).join("\n");
  return { column, groups, count: names.length, key };
}

const collator = new Intl.Collator("en", { numeric: true });
function compare(one, other) {
  if (one === other) return 0;
  if (!one || !other) return one ? -1 : 1;   // those without come last
  return collator.compare(one, other);
}

onMembershipChange((whole) => {
  if (whole && !placed.value) settleNow();
  else settleSoon();
});
// What a person asks for is done at once; a notice waits like everything that moves others.
effect(() => {
  filter.value, query.value;
  if (placed.peek()) untracked(settleNow);
});
effect(() => {
  const latest = notices.value;
  if (placed.peek()) settleSoon();
  else shownNotices.value = latest;
});
