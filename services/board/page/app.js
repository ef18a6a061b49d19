// Puts the page together.
import { effect } from "@preact/signals";
import { render } from "preact";
import { Columns } from "./columns.js";
import { begin } from "./connection.js";
import { Day } from "./day.js";
import { Drawer } from "./drawer.js";
import { Help } from "./help.js";
import { html } from "./html.js";
import { listenToKeys } from "./keyboard.js";
import { Login, Unlock } from "./login.js";
import { Notices, linkSaid } from "./notices.js";
import { placed } from "./placement.js";
import { Strip } from "./questions.js";
import { followAddress, takeToken } from "./route.js";
import { counts, fleet, gate, locked, offline } from "./state.js";
import { Top } from "./top.js";

const LINK_SAID_MS = 10_000;

function App() {
  if (gate.value === "login") return html`<${Login} />`;
  return html`<${Top} /><${Notices} />
    <main><${Strip} /><${Columns} />${placed.value && html`<${Day} />`}</main>
    ${gate.value === "open" && html`<${Drawer} />`}<${Help} /><${Unlock} />`;
}

/** A link that was refused though a session is there: the board goes on, and says so for a while. */
async function enter(token) {
  const said = await begin(token);
  linkSaid.value = said;
  if (said) setTimeout(() => { linkSaid.value = ""; }, LINK_SAID_MS);
}

effect(() => {
  const waiting = counts.value.needs_you ? `(${counts.value.needs_you}) ` : "";
  document.title = fleet.value ? `${waiting}${fleet.value.name} · Muster` : "Muster";
});

effect(() => { document.documentElement.dataset.offline = offline.value !== ""; });
effect(() => { document.documentElement.dataset.locked = locked.value; });

followAddress(enter);
listenToKeys();
const token = takeToken();
render(html`<${App} />`, document.getElementById("app"));
enter(token);
