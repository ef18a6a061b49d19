// Commands and what became of them. Each is sent from a place on the page, and its outcome is shown there.
import { effect, signal } from "@preact/signals";
import { announce } from "./announcer.js";
import { ask, onMessage } from "./connection.js";
import { now } from "./clock.js";
import { locked } from "./state.js";

const KEPT = 60;
const LOOK_FIRST = "so it may have been done: look before you ask again";
const FINAL = new Set(["done", "refused", "lost"]);

/**
 * The latest outcome per place: `{id, verb, agent, label, state, said, at}`.
 * `state` is that of the command message; "sent" also while it is on its way.
 */
export const outcomes = signal(new Map());
/** Open while the page offers to unlock; holds the reason. */
export const unlocking = signal(null);

const placeOfId = new Map();
const early = new Map();   // messages can overtake the answer to the POST

export const isFinal = (outcome) => FINAL.has(outcome.state);
export const offerUnlock = (reason = "") => { unlocking.value = reason; };

/** Sends a command. Returns whether the server took it. */
export async function send(place, label, command) {
  show(place, { ...command, label, id: "", state: "sent", said: "", at: now() });
  const { status, data } = await ask("/api/commands", command);
  if (status === 202) {
    placeOfId.set(data.id, place);
    trim(placeOfId);
    update(place, { id: data.id });
    if (early.has(data.id)) take(early.get(data.id));
    return true;
  }
  const looksOnly = status === 403 && data.code === "locked";
  const said = looksOnly ? "this page only looks; unlock it, then ask again" : data.said ?? "the server gave no reason";
  update(place, status === 0 ? { state: "lost", said: `${said}, ${LOOK_FIRST}` } : { state: "refused", said, looksOnly });
  if (looksOnly) offerUnlock("That needs an unlocked page.");
  return false;
}

export function clearOutcome(place) {
  const kept = new Map(outcomes.value);
  kept.delete(place);
  outcomes.value = kept;
}

function show(place, outcome) {
  const kept = new Map(outcomes.value);
  kept.delete(place);
  kept.set(place, outcome);
  trim(kept);
  outcomes.value = kept;
}

function update(place, change) {
  const outcome = outcomes.value.get(place);
  if (!outcome) return;
  const changed = { ...outcome, ...change, at: now() };
  show(place, changed);
  if (isFinal(changed)) announce(`${changed.agent}: ${outcomeText(changed)}`);
}

function take(message) {
  const place = placeOfId.get(message.id);
  if (!place) {
    early.set(message.id, message);
    trim(early);
    return;
  }
  early.delete(message.id);
  if (outcomes.value.get(place)?.id === message.id) update(place, { state: message.state, said: message.said ?? "" });
}

function trim(map) {
  while (map.size > KEPT) map.delete(map.keys().next().value);
}

/** After a gap in the stream: asks for the commands that were still under way. */
async function catchUp() {
  for (const outcome of outcomes.value.values()) {
    if (!outcome.id || isFinal(outcome)) continue;
    const { status, data } = await ask(`/api/commands/${encodeURIComponent(outcome.id)}`);
    if (status === 200) take({ ...data, id: outcome.id });
    // A board that was started anew does not know what was asked before.
    if (status === 404) take({ id: outcome.id, state: "lost", said: `its end was missed, ${LOOK_FIRST}` });
  }
}

const MARKS = { sent: "…", waiting: "…", done: "✓", refused: "✕", lost: "?" };

export const outcomeMark = (outcome) => MARKS[outcome.state] ?? "…";
export function outcomeText({ label, state, said }) {
  switch (state) {
    case "sent": return `${label}: sent…`;
    case "waiting": return `${label} waits${said && `: ${said}`}`;
    case "done": return `${label}: ${said || "done"}`;
    case "refused": return `${label} refused${said && `: ${said}`}`;
    default: return `${label}: ${said || "no answer in time"}`;
  }
}

/** The last thing that was asked of an agent, whichever place it was asked from; comments show their own. */
export function latestOutcome(agent) {
  const asked = [...outcomes.value.values()].filter((outcome) => outcome.agent === agent && outcome.verb !== "comment");
  return asked.reduce((latest, outcome) => !latest || outcome.at >= latest.at ? outcome : latest, null);
}

// Once the page may act, what was refused for that says nothing any more.
effect(() => {
  if (locked.value) return;
  const kept = [...outcomes.peek()].filter(([, outcome]) => !outcome.looksOnly);
  if (kept.length < outcomes.peek().size) outcomes.value = new Map(kept);
});
onMessage("command", take);
onMessage("open", catchUp);
