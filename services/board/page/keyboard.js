// The keys: one place that decides what a key means here and now.
import { nextTheme } from "./appearance.js";
import { focusWanted } from "./field.js";
import { helpOpen } from "./help.js";
import { phone } from "./phone.js";
import { closeDrawer, openAgent, route } from "./route.js";
import { filter } from "./state.js";

const typing = (element) => element.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

/** The element that keys act on: the focused panel or card. */
const focused = () => document.activeElement?.closest("[data-question], [data-card]");

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return back(event);
  if (typing(event.target) || (event.repeat && !event.key.startsWith("Arrow"))) return;
  const action = /^[1-9]$/.test(event.key) ? () => choose(event.key) : KEYS[event.key];
  if (action && action(event) !== false) event.preventDefault();
}

const KEYS = {
  "/": () => document.getElementById("search")?.focus(),
  "?": () => { helpOpen.value = true; },
  t: nextTheme,
  a: () => press("approve"),
  d: () => press("deny"),
  o: open,
  Enter: (event) => event.target.matches("[data-question]") ? open() : false,
  s: () => focusField("send", "screen"),
  c: () => focusField("comment", "comments"),
  ArrowUp: () => move("up"),
  ArrowDown: () => move("down"),
  ArrowLeft: () => move("left"),
  ArrowRight: () => move("right"),
};

function back(event) {
  if (typing(event.target)) return event.target.blur();
  if (route.value) return closeDrawer();
  filter.value = null;
}

/** The panel a key may answer: the focused one, the open drawer's, or the first when nothing is focused. */
function questionElement() {
  const element = focused();
  if (element?.matches("[data-question]")) return element;
  if (route.value) return document.querySelector("[data-drawer-question]");
  if (element) return null;
  return document.querySelector(".strip [data-question]");
}

/** Presses a button of the question as a pointer would: a button that is not ready yet, or gone, does nothing. */
function press(action) {
  const panel = questionElement();
  if (!panel) return openFocusedQuestion();
  if (!visible(panel)) return panel.scrollIntoView({ block: "nearest" });
  pressButton(panel.querySelector(`.answer-buttons:not([inert]) [data-action="${action}"]`));
}

function choose(key) {
  const panel = focused()?.matches("[data-question]") || route.value ? questionElement() : null;
  if (!panel || !visible(panel)) return false;
  pressButton(panel.querySelector(`.answer-buttons:not([inert]) [data-action="answer"][data-key="${key}"]`));
}

function pressButton(button) {
  if (button && !button.disabled) button.click();
}

/** A card does not show its question: it is opened, so that nobody approves what was not read. */
function openFocusedQuestion() {
  const card = focused();
  if (card?.dataset.status !== "needs_you") return false;
  openAgent(card.dataset.card);
}

function visible(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

function open() {
  const element = focused() ?? (route.value ? null : document.querySelector(".strip [data-question]"));
  if (!element) return false;
  openAgent(element.dataset.question ?? element.dataset.card);
}

function focusField(which, tab) {
  const name = route.value?.name ?? focused()?.dataset.card ?? focused()?.dataset.question;
  if (!name) return false;
  focusWanted.value = which;
  if (!route.value || which === "comment") openAgent(name, tab);
}

/** Moves the focus by what stands where on the page. */
function move(direction) {
  if (document.activeElement?.closest(".drawer")) return false;
  const panels = [...document.querySelectorAll(".strip [data-question]")];
  const columns = [...document.querySelectorAll(".columns .column")]
    .map((column) => [...column.querySelectorAll("[data-card]")]).filter((cards) => cards.length);
  const from = focused();
  const target = !from ? panels[0] ?? columns[0]?.[0]
    : from.matches("[data-question]") ? fromPanel(from, direction, panels, columns) : fromCard(from, direction, panels, columns);
  if (!target) return from ? undefined : false;
  target.focus({ preventScroll: true });
  target.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function fromPanel(panel, direction, panels, columns) {
  const at = panels.indexOf(panel);
  const step = { left: -1, right: 1 }[direction];
  if (step) return panels[at + step];
  const box = panel.getBoundingClientRect();
  const others = panels.filter((other) => {
    const { top } = other.getBoundingClientRect();
    return direction === "down" ? top >= box.bottom : top < box.top;
  });
  const next = nearest(direction === "down" ? others : others.reverse(), (other) => Math.abs(other.getBoundingClientRect().left - box.left));
  return next ?? (direction === "down" ? columns[0]?.[0] : undefined);
}

function fromCard(card, direction, panels, columns) {
  const column = columns.findIndex((cards) => cards.includes(card));
  const at = columns[column].indexOf(card);
  const side = { left: -1, right: 1 }[direction];
  if (side) {
    const top = card.getBoundingClientRect().top;
    const beside = columns[column][at + side];   // a column that is shown alone has rows of cards
    if (beside?.getBoundingClientRect().top === top) return beside;
    return nearest(columns[column + side] ?? [], (other) => Math.abs(other.getBoundingClientRect().top - top));
  }
  if (card.closest(".columns").dataset.alone === "true") return inRows(card, direction, columns[column]) ?? (direction === "up" ? panels.at(-1) : undefined);
  if (direction === "down") return columns[column][at + 1] ?? (phone.matches ? columns[column + 1]?.[0] : undefined);
  return columns[column][at - 1] ?? (phone.matches ? columns[column - 1]?.at(-1) : undefined) ?? panels.at(-1);
}

/** The card above or below in a column that is shown alone. */
function inRows(card, direction, cards) {
  const { top, left } = card.getBoundingClientRect();
  const away = (other) => (other.getBoundingClientRect().top - top) * (direction === "down" ? 1 : -1);
  const others = cards.filter((other) => away(other) > 0);
  const closest = Math.min(...others.map(away));
  return nearest(others.filter((other) => away(other) === closest), (other) => Math.abs(other.getBoundingClientRect().left - left));
}

function nearest(elements, distance) {
  return elements.reduce((best, element) => !best || distance(element) < distance(best) ? element : best, null);
}

export function listenToKeys() {
  addEventListener("keydown", onKey);
}
