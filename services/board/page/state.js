// What the page knows: one signal per card, so that a change renders one card and nothing else.
import { batch, computed, signal } from "@preact/signals";
import { followServer } from "./clock.js";

/** The columns from bad to good, in the order of the page and of the day's letters. */
export const COLUMNS = [
  { key: "needs_you", name: "Needs you", letter: "n" },
  { key: "trouble", name: "Trouble", letter: "t" },
  { key: "limited", name: "Limited", letter: "l" },
  { key: "working", name: "Working", letter: "w" },
  { key: "waiting", name: "Waiting", letter: "i" },
  { key: "starting", name: "Starting", letter: "s" },
  { key: "done", name: "Done", letter: "d" },
  { key: "stopped", name: "Stopped", letter: "x" },
];
export const columnName = (key) => COLUMNS.find((column) => column.key === key)?.name ?? key;

/** "loading", "login" (with the reason in `loginSaid`) or "open". */
export const gate = signal("loading");
export const loginSaid = signal("");
/** Why the page is offline; empty while the stream flows. */
export const offline = signal("");
export const session = signal(null);
/** Whether this page only looks. */
export const locked = computed(() => session.value?.may_act === false);
export const fleet = signal(null);
export const loops = signal([]);
export const counts = signal({});
export const screen = signal(null);
export const filter = signal(null);
export const query = signal("");

/** Per card's name `{card, line, raw, gone}`: two signals, the card as text to see whether it changed, and whether it left. */
export const agents = new Map();

const membershipListeners = new Set();
/** Called after each frame in which cards came, went, or changed what decides their place. */
export const onMembershipChange = (listener) => membershipListeners.add(listener);

/** Takes the messages of one frame at once, and tells listeners when membership changed. */
export function applyBoards(messages) {
  let moved = false;
  let whole = false;
  batch(() => {
    for (const message of messages) {
      moved = applyBoard(message) || moved;
      whole ||= message.whole === true;
    }
    if (moved || whole) counts.value = count();
  });
  if (moved || whole || query.value) for (const listener of membershipListeners) listener(whole);
}

function applyBoard(message) {
  if (message.now) followServer(message.now);
  if (message.fleet) fleet.value = message.fleet;
  if (message.loops) loops.value = message.loops;
  let moved = Boolean(message.loops);   // whether a column has group labels
  const cards = message.cards ?? {};
  const lines = message.lines ?? {};
  const gone = message.whole ? [...agents.keys()].filter((name) => !(name in cards)) : message.gone ?? [];
  for (const [name, card] of Object.entries(cards)) moved = applyCard(name, card) || moved;
  for (const name of gone) moved = drop(name) || moved;
  for (const name of message.whole ? agents.keys() : Object.keys(lines)) {
    const known = agents.get(name);
    if (known) known.line.value = lines[name] ?? "";
  }
  return moved;
}

function applyCard(name, card) {
  const known = agents.get(name);
  const raw = JSON.stringify(card);
  if (!known) {
    agents.set(name, { card: signal(card), line: signal(""), raw, gone: false });
    return true;
  }
  if (known.raw === raw && !known.gone) return false;
  const moved = known.gone || placeKey(known.card.value) !== placeKey(card);
  known.gone = false;
  known.raw = raw;
  known.card.value = card;
  return moved;
}

/** What decides where a card stands. */
function placeKey(card) {
  return [card.column, card.loop, card.role, card.monitoring, card.question?.fingerprint].join("\n");
}

function drop(name) {
  const known = agents.get(name);
  if (!known) return false;
  known.gone = true;   // it stays where it is until the placement may move things
  known.line.value = "";   // also if it comes back by then
  return true;
}

export function forgetGone() {
  for (const [name, known] of agents) if (known.gone) agents.delete(name);
}

function count() {
  const totals = { all: 0 };
  for (const { card, gone } of agents.values()) {
    if (gone) continue;
    totals.all += 1;
    totals[card.value.column] = (totals[card.value.column] ?? 0) + 1;
  }
  return totals;
}

/** Whether a card has every word that is searched for. */
export function matches(name, words) {
  if (!words.length) return true;
  const { card, line } = agents.get(name);
  const { role, loop, headline, reason, backend, model, branch, account, question, last_words: lastWords } = card.peek();
  const text = [name, role, loop, headline, reason, backend, model, branch, account, question?.dialog, line.peek(), lastWords]
    .join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}
