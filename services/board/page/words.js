// Numbers and times as people read them.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

/** The shortest form, for the corner of a card: 12s, 6m, 1h, 2d. */
export function age(ms) {
  if (!(ms >= SECOND)) return "0s";
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)}h`;
  return `${Math.floor(ms / DAY)}d`;
}

/** A length of time in a sentence: 12 s, 4 min, 2 h 13 m, 3 d 4 h. */
export function span(ms) {
  if (!(ms >= SECOND)) return "0 s";
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return joined(Math.floor(ms / HOUR), "h", Math.floor((ms % HOUR) / MINUTE), "m");
  return joined(Math.floor(ms / DAY), "d", Math.floor((ms % DAY) / HOUR), "h");
}

function joined(large, largeUnit, small, smallUnit) {
  return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const CLOCK_SECONDS = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const WEEKDAY = new Intl.DateTimeFormat("en-GB", { weekday: "short" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** The local time of an instant; the day too where it is not the day of `now`. */
export function clockTime(iso, now, { seconds = false } = {}) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  const time = (seconds ? CLOCK_SECONDS : CLOCK).format(date);
  if (date.toDateString() === new Date(now).toDateString()) return time;
  const day = Math.abs(date - now) < 6 * DAY ? WEEKDAY.format(date) : DATE.format(date);
  return `${day} ${time}`;
}

/** What a limited agent waits for, and how long that takes. */
export function limitText(card, now) {
  const until = card.limit_resets ?? card.resumes;
  if (!until) return card.headline;
  const left = Date.parse(until) - now;
  return left > 0 ? `${card.headline} · ${span(left)} left` : `${card.headline} · should lift any moment`;
}

export function capital(text) {
  return text ? text[0].toUpperCase() + text.slice(1).replaceAll("_", " ") : "";
}

/** The parts that are there, with middle dots between them. */
export function dotted(...parts) {
  return parts.filter(Boolean).join(" · ");
}

/** A count with its noun: 1 agent, 2 agents. */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** In one line of at most so many characters. */
export function shortened(text, most) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

const bare = (text) => text.toLowerCase().replace(/^(its?|is) /, "").replace(/[.\s]+$/, "");
const stem = (text) => bare(text).replace(/(ing|ed|s)$/, "");

/** Whether a text already says what another one does: "Failed: no space left" tells "it failed". */
export const tells = (text, other) => bare(text).includes(bare(other));

/** Whether two words are the same but for their endings: Works, Working. */
export const repeats = (one, other) => stem(one) === stem(other);
