// Messages of the stream, taken together once per animation frame.
const HIDDEN_MS = 500;   // a hidden page gets no animation frames, yet its queue must not grow

/** Returns a function that takes an item; `apply` gets all items of a frame at once. */
export function perFrame(apply) {
  let waiting = [];
  let timer = 0;
  const flush = () => {
    clearTimeout(timer);
    const taken = waiting;
    waiting = [];
    if (taken.length) apply(taken);
  };
  return (item) => {
    waiting.push(item);
    if (waiting.length > 1) return;
    requestAnimationFrame(flush);
    timer = setTimeout(flush, HIDDEN_MS);
  };
}
