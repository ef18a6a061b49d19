// Cards that moved slide from where they stood (first, last, invert, play).
const SLIDE_MS = 140;
const MOST = 80;   // more at once is no motion that anyone could follow

const reduced = matchMedia("(prefers-reduced-motion: reduce)");
let before = new Map();
let focused = null;

const cardElements = () => document.querySelectorAll(".columns [data-card]");
const onScreen = ({ top, bottom }) => bottom > 0 && top < innerHeight;

/** Remembers where the visible cards stand, and which one has the focus. */
export function recordPositions() {
  focused = document.activeElement?.closest?.(".columns [data-card]")?.dataset.card ?? null;
  before = new Map();
  if (reduced.matches || document.hidden) return;
  for (const element of cardElements()) {
    const box = element.getBoundingClientRect();
    if (onScreen(box)) before.set(element.dataset.card, box);
  }
}

/** Lets each card that stands elsewhere now slide there; gives the focus back to a card that changed its column. */
export function slideFromRecorded() {
  const moves = [];
  if (before.size) for (const element of cardElements()) {
    const from = before.get(element.dataset.card);
    if (!from) continue;
    const to = element.getBoundingClientRect();
    if (from.left !== to.left || from.top !== to.top) moves.push([element, from.left - to.left, from.top - to.top]);
  }
  before = new Map();
  if (moves.length <= MOST) for (const [element, x, y] of moves) {
    element.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], { duration: SLIDE_MS, easing: "ease-out" });
  }
  restoreFocus();
}

function restoreFocus() {
  if (!focused || document.activeElement !== document.body) return;
  document.querySelector(`[data-card="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  focused = null;
}
