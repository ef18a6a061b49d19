// Cards that moved slide from where they stood (first, last, invert, play).
const SLIDE_MS = 140, FADE_MS = 140;
const MOST = 80;   // more at once is no motion that anyone could follow

const reduced = matchMedia("(prefers-reduced-motion: reduce)");
let before = new Map();
let focused = null;

const cardElements = () => document.querySelectorAll(".columns [data-card]");
const onScreen = ({ top, bottom }) => bottom > 0 && top < innerHeight;

/** Where a card stands: on the screen, in its column, and in the area of all columns, which may move as a whole. */
function standing(element) {
  const column = element.closest(".column");
  return {
    box: element.getBoundingClientRect(), column: column.dataset.column, inColumn: column.getBoundingClientRect(),
    inArea: column.parentElement.getBoundingClientRect(), scrolls: element.parentElement.dataset.long === "true",
  };
}

/** Remembers where the visible cards stand, and which one has the focus. */
export function recordPositions() {
  focused = document.activeElement?.closest?.(".columns [data-card]")?.dataset.card ?? null;
  before = new Map();
  if (reduced.matches || document.hidden) return;
  for (const element of cardElements()) {
    const from = standing(element);
    if (onScreen(from.box)) before.set(element.dataset.card, from);
  }
}

/** Lets each card that stands elsewhere now slide there; gives the focus back to a card that changed its column. */
export function slideFromRecorded() {
  const moves = [];
  if (before.size) for (const element of cardElements()) {
    const from = before.get(element.dataset.card);
    const frames = from && framesOf(from, standing(element));
    if (frames) moves.push([element, frames]);
  }
  before = new Map();
  if (moves.length <= MOST) for (const [element, frames] of moves) {
    element.animate(frames, { duration: "opacity" in frames[0] ? FADE_MS : SLIDE_MS, easing: "ease-out" });
  }
  restoreFocus();
}

/** A column that scrolls would cut off what slides out of it or into it: such a card only fades in. */
function framesOf(from, to) {
  const changed = from.column !== to.column;
  if (from.scrolls || to.scrolls) return changed ? [{ opacity: 0 }, { opacity: 1 }] : null;
  const [was, is] = changed ? [from.inArea, to.inArea] : [from.inColumn, to.inColumn];
  const x = Math.round(from.box.left - was.left - to.box.left + is.left);
  const y = Math.round(from.box.top - was.top - to.box.top + is.top);
  if (!x && !y) return null;
  // The one that changes its column goes above those that make room for it.
  const zIndex = changed ? 2 : 1;
  return [{ transform: `translate(${x}px, ${y}px)`, zIndex }, { transform: "none", zIndex }];
}

function restoreFocus() {
  if (!focused || document.activeElement !== document.body) return;
  document.querySelector(`[data-card="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  focused = null;
}
