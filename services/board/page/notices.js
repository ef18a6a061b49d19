// What is broken, in words: one quiet line under the bar that goes away by itself.
import { computed, signal } from "@preact/signals";
import { html } from "./html.js";
import { fleet, offline } from "./state.js";

/** A sentence about the last link, for a while. */
export const linkSaid = signal("");

export const notices = computed(() => {
  const found = [];
  if (offline.value) found.push({ about: "offline", text: offline.value });
  if (linkSaid.value) found.push({ about: "link", text: linkSaid.value });
  const known = fleet.value;
  if (!known || offline.value) return found;   // offline, all else is what was once
  if (isDown(known)) return [...found, { about: "down", text: "The fleet is down: start it with `muster up`." }];
  if (!known.broker.up) found.push({ about: "broker", text: `Broker ${known.broker.said}` });
  if (!known.tmux.up) found.push({ about: "tmux", text: known.tmux.said || "tmux does not answer" });
  for (const { name, said, status } of troubledServices(known)) found.push({ about: "service", text: `${name}: ${said || status}` });
  for (const fault of known.faults) found.push({ about: "fleet", text: fault });
  return found;
});

/** The notices on the page: they follow `notices` when nothing is held. */
export const shownNotices = signal([]);

/** Nobody keeps the services running: that is one fact, whatever is left of them. */
export const isDown = ({ services }) => services.some(({ name, status }) => name === "supervisor" && status === "down");

/** Services worth a name. Without a broker all are alone: that is one fact, and the broker's line tells it. */
export function troubledServices({ broker, services }) {
  return services.filter(({ status }) => status !== "online" && !(status === "alone" && !broker.up));
}

export function Notices() {
  const shown = shownNotices.value;
  if (!shown.length) return null;
  return html`<div class="notices" role="status">
    ${shown.map(({ about, text }) => html`<p key=${about + text} data-notice=${about} title=${text}>${about === "down" ? withCode(text) : text}</p>`)}
  </div>`;
}

/** What stands between backticks is something to type. */
const withCode = (text) => text.split("`").map((part, at) => at % 2 ? html`<code>${part}</code>` : part);
