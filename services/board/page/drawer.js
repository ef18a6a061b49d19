// One agent whole: what it is doing and why, its screen, its history, and the buttons that act on it.
import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Actions } from "./actions.js";
import { Ticking, now, since } from "./clock.js";
import { watchScreen } from "./connection.js";
import { EvidenceRows } from "./evidence.js";
import { html } from "./html.js";
import { useAnswer } from "./inquiry.js";
import { Keycap } from "./keycap.js";
import { phone } from "./phone.js";
import { placed } from "./placement.js";
import { Answers } from "./questions.js";
import { TABS, closeDrawer, openAgent, route } from "./route.js";
import { Screen } from "./screen.js";
import { agents, columnName, counts } from "./state.js";
import { Comments, Evidence, Record, Timeline, Transcript } from "./tabs.js";
import { unread } from "./unread.js";
import { capital, dotted, limitText, repeats, span, tells } from "./words.js";

const PANELS = { screen: ScreenTab, timeline: Timeline, evidence: Evidence, comments: Comments, transcript: Transcript, record: Record };

const SHOWS_EVIDENCE = new Set(["screen", "evidence"]);
const FOLLOW_MS = 2000;

export function Drawer() {
  if (!route.value) return null;
  const { name, tab } = route.value;
  return html`<${Sheet} key=${name} name=${name} tab=${tab} />`;
}

function Sheet({ name, tab }) {
  // Cards are no signal: one that comes is looked for again when it is counted, one that goes as well.
  const known = counts.value && agents.get(name);
  const element = useRef();
  useSheetOnPhone();
  useFocusInside(element);
  return html`<aside class="drawer" ref=${element} role="dialog" aria-label=${`Agent ${name}`} tabindex="-1" data-drawer=${name}>
    ${known ? html`<${Agent} name=${name} card=${known.card.value} tab=${tab} />` : html`<${Unknown} name=${name} />`}
  </aside>`;
}

/** Takes the focus on opening, and gives it back to the card or panel on closing. */
function useFocusInside(element) {
  const [before] = useState(() => document.activeElement);
  useEffect(() => {
    // A field inside may have been asked for by a key: it has the focus already.
    if (!element.current.contains(document.activeElement)) element.current.focus({ preventScroll: true });
    return () => {
      const name = before?.closest?.("[data-card]")?.dataset.card;
      const target = before?.isConnected ? before : name && document.querySelector(`[data-card="${CSS.escape(name)}"]`);
      target?.focus?.({ preventScroll: true });
    };
  }, []);
}

/** On a phone the drawer covers the page: what lies behind can't be reached. */
function useSheetOnPhone() {
  useEffect(() => {
    const cover = (covered) => {
      for (const behind of document.querySelectorAll(".bar, main")) behind.inert = covered;
      document.body.classList.toggle("covered", covered);
    };
    const follow = () => cover(phone.matches);
    follow();
    phone.addEventListener("change", follow);
    return () => {
      phone.removeEventListener("change", follow);
      cover(false);
    };
  }, []);
}

function Unknown({ name }) {
  return html`<div class="drawer-head"><h2>${name}</h2><${Close} /></div>
    <p class="empty">${placed.value ? `There is no agent “${name}” on the board.` : "Loading…"}</p>`;
}

const Close = () => html`<button class="plain close" data-action="close" aria-label="Close" onClick=${closeDrawer}>
  <${Keycap}>esc</${Keycap}><span class="cross" aria-hidden="true">✕</span>
</button>`;

function Agent({ name, card, tab }) {
  const Panel = PANELS[tab];
  // The header needs little of them; a tab that shows them follows whatever changes on the card.
  const whole = JSON.stringify(card);
  const evidence = useAnswer(card, "evidence", SHOWS_EVIDENCE.has(tab) ? whole : `${card.column} ${card.activity} ${card.since} ${card.reason}`, FOLLOW_MS);
  const record = useAnswer(card, "record", tab === "record" ? whole : `${card.status} ${card.spawn} ${card.session}`, FOLLOW_MS);
  return html`
    <div class="drawer-head">
      <h2>${name}</h2><span class="role">${card.role}</span><${Attach} command=${record.data?.attach} /><${Close} />
    </div>
    <${Sentence} card=${card} told=${evidence.data?.found?.decided_by} />
    <${Tabs} name=${name} tab=${tab} card=${card} />
    <div class="tab-body" id="tab-body" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      <${Panel} name=${name} card=${card} evidence=${evidence} record=${record} />
    </div>
    <${Actions} name=${name} card=${card} />`;
}

function Attach({ command }) {
  const [copied, setCopied] = useState(false);
  if (!command) return html`<span class="attach"></span>`;
  const copy = async () => {
    await navigator.clipboard?.writeText(command);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<span class="attach"><code title=${command}>${command}</code>
    <button class="small" data-action="copy" aria-label="Copy the attach command" onClick=${copy}>${copied ? "copied" : "copy"}</button>
  </span>`;
}

function Sentence({ card, told }) {
  const what = card.column === "limited" ? limitText(card, now()) : repeats(card.headline, columnName(card.column)) ? "" : card.headline;
  const rest = dotted(told && `told by ${told}`, dotted(card.backend, card.model), card.branch && `branch ${card.branch}`, card.workspace,
    card.drifts.length > 0 && `differs: ${card.drifts.map((drift) => drift.replaceAll("_", " ")).join(", ")}`,
    !card.monitoring && `not monitored${card.stopped_by ? `, stopped by ${card.stopped_by}` : ""}`);
  return html`<p class="sentence" data-status=${card.column}><b class="status">${columnName(card.column)}</b>
    <${Ticking} text=${() => ` for ${span(since(card.since))}`} />${what && html` · <span title=${card.reason}>${what}</span>`}${rest && ` · ${rest}`}
    ${card.reason && !tells(card.headline, card.reason) && html`<span class="reason">${capital(card.reason)}</span>`}</p>`;
}

function Tabs({ name, tab, card }) {
  const step = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.stopPropagation();
    const next = TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length];
    openAgent(name, next);
    event.currentTarget.querySelector(`[data-tab="${next}"]`).focus();
  };
  return html`<div class="tabs" role="tablist" onKeyDown=${step}>
    ${TABS.map((key) => html`<button key=${key} role="tab" id=${`tab-${key}`} data-tab=${key} aria-selected=${key === tab}
      aria-controls="tab-body" tabindex=${key === tab ? 0 : -1} onClick=${() => openAgent(name, key)}>
      ${capital(key)}${key === "comments" && html`<${CommentCount} card=${card} />`}
    </button>`)}
  </div>`;
}

function CommentCount({ card }) {
  return card.comments > 0 && html`<span class="tab-count" data-unread=${unread(card) > 0}>${card.comments}</span>`;
}

function ScreenTab({ name, card, evidence }) {
  return html`${card.question && html`<div class="drawer-question" data-status="needs_you" data-drawer-question=${name}>
      <pre class="dialog-text">${card.question.dialog}</pre><${Answers} name=${name} question=${card.question} allOptions=${true} />
    </div>`}
    <${Screen} agent=${card.agent} lastWords=${card.last_words} />
    <${EvidenceRows} answer=${evidence} short=${true} />`;
}

// The server sends one agent's screen at a time: the open drawer's.
effect(() => watchScreen(route.value ? agents.get(route.value.name)?.card.peek().agent ?? route.value.name : null));
