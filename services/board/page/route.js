// The address: `#/agent/<name>/<tab>` opens the drawer; any other fragment is a login token.
import { signal } from "@preact/signals";

export const TABS = ["screen", "timeline", "evidence", "comments", "transcript", "record"];

/** `{name, tab}` of the open drawer, or null. */
export const route = signal(parse());
let opened = 0;   // drawers that this page opened, so that closing can go back instead of forth

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

export function openAgent(name, tab) {
  location.hash = address(name, tab);
}

export function showTab(name, tab) {
  history.replaceState(null, "", address(name, tab));
  route.value = parse();
}

export function closeDrawer() {
  if (opened > 0) return history.back();
  history.replaceState(null, "", location.pathname);
  route.value = null;
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
    const next = parse();
    if (next && !route.value) opened += 1;
    if (!next && route.value && opened > 0) opened -= 1;
    route.value = next;
  });
}
