// Whether things may move: not under a pointer that is in use, nor under a finger, nor away from a card that keys steer.
const QUIET_MS = 3000;

const pointer = { inColumns: false, inStrip: false, movedAt: -Infinity };
let fingers = 0;
let keyAt = -Infinity;

const recent = (time) => performance.now() - time < QUIET_MS;
const within = (element, selector) => element instanceof Element && element.closest(selector) !== null;

/** Whether cards must stay where they are. */
export function cardsHeld() {
  return (pointer.inColumns && recent(pointer.movedAt)) || fingers > 0
    || (recent(keyAt) && within(document.activeElement, "[data-card]"));
}

/** Whether panels of the strip must stay where they are. */
export function stripHeld() {
  return pointer.inStrip || (recent(keyAt) && within(document.activeElement, "[data-question]"));
}

function track(event) {
  if (event.pointerType === "touch") return;   // fingers are counted below
  pointer.inColumns = within(event.target, ".columns");
  pointer.inStrip = within(event.target, ".strip");
  pointer.movedAt = performance.now();
}

const leave = () => { pointer.inColumns = pointer.inStrip = false; };
const countFingers = (event) => { fingers = event.touches.length; };

addEventListener("pointermove", track, { passive: true });
addEventListener("pointerdown", track, { passive: true });
document.documentElement.addEventListener("pointerleave", leave);
addEventListener("blur", leave);
for (const kind of ["touchstart", "touchend", "touchcancel"]) addEventListener(kind, countFingers, { passive: true });
addEventListener("keydown", () => { keyAt = performance.now(); });
