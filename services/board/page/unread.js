// How many of a card's notable comments were not seen yet. What was seen is remembered per card.
import { signal } from "@preact/signals";

const KEY = "muster-seen";
const seen = signal(remembered());

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

export function unread(card) {
  if (!card) return 0;
  const known = seen.value[card.card] ?? 0;
  return known > card.notable ? card.notable : card.notable - known;   // fewer than were seen: they are counted anew
}

export function markSeen(card) {
  if (seen.peek()[card.card] === card.notable) return;
  seen.value = { ...seen.peek(), [card.card]: card.notable };
  localStorage.setItem(KEY, JSON.stringify(seen.value));
}
