// The address: `#/agent/<name>/<tab>` opens the drawer; any other fragment is a login token.
import { signal } from "@preact/signals";

export const TABS = ["screen", "timeline", "evidence", "comments", "transcript", "record"];

/** `{name, tab}` of the open drawer, or null. */
export const route = signal(parse());
let entered = false;   // whether the open drawer is an entry of the history that "back" leaves

function parse() {
  const [, kind, name, tab] = location.hash.split("/");
  if (kind !== "agent" || !name) return null;
  return { name: decoded(name), tab: TABS.includes(tab) ? tab : "screen" };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const address = (name, tab = "screen") => `#/agent/${encodeURIComponent(name)}/${tab}`;

/** Opens the drawer as one step of the history; another agent or tab in it is no further step, so that "back" closes it. */
export function openAgent(name, tab) {
  if (route.value) replace(address(name, tab));
  else location.hash = address(name, tab);
}

export function closeDrawer() {
  if (entered) history.back();
  else replace(location.pathname);
}

function replace(to) {
  history.replaceState(null, "", to);
  route.value = parse();
}

/** Takes a login token out of the address, so that it stays neither there nor in the history. */
export function takeToken() {
  const fragment = location.hash.slice(1);
  if (!fragment || fragment.startsWith("/")) return "";
  history.replaceState(null, "", location.pathname);
  return fragment;
}

/** Follows the address; `onToken` gets a token that was opened in this tab. */
export function followAddress(onToken) {
  addEventListener("hashchange", () => {
    const token = takeToken();
    if (token) return onToken(token);
    const before = route.value;
    route.value = parse();
    entered = route.value !== null && (entered || before === null);
  });
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#/agent/']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !route.value) return;
    event.preventDefault();
    replace(link.getAttribute("href"));
  });
}
