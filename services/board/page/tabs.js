// The drawer's tabs beside the screen: timeline, evidence, comments, transcript, record.
import { useEffect, useRef } from "preact/hooks";
import { ActButton } from "./act.js";
import { outcomes, send } from "./commands.js";
import { now } from "./clock.js";
import { EvidenceRows } from "./evidence.js";
import { TextField } from "./field.js";
import { html } from "./html.js";
import { Missing, useAnswer } from "./inquiry.js";
import { Keycap } from "./keycap.js";
import { Outcome } from "./outcome.js";
import { markSeen } from "./unread.js";
import { clockTime, dotted } from "./words.js";

const Time = ({ of }) => html`<time datetime=${of} title=${of}>${of ? clockTime(of, now(), { seconds: true }) : ""}</time>`;

export function Timeline({ card }) {
  const answer = useAnswer(card, "timeline", `${card.column} ${card.headline} ${card.comments}`);
  if (!answer.data) return html`<${Missing} answer=${answer} />`;
  if (!answer.data.entries.length) return html`<p class="empty">Nothing has happened yet.</p>`;
  return html`<ol class="entries">${answer.data.entries.map((entry, at) => html`<li key=${`${entry.time}${entry.kind}${at}`} data-tone=${entry.tone}>
    <${Time} of=${entry.time} /><span class="family" title=${entry.family}>${entry.kind.replaceAll("_", " ")}</span><span class="entry-text">${entry.text}</span></li>`)}</ol>`;
}

export function Evidence({ evidence }) {
  const found = evidence.data?.found;
  if (!found) return html`<${Missing} answer=${evidence} />`;
  const subagents = Object.entries(found.subagents ?? {});
  return html`<${EvidenceRows} answer=${evidence} />
    ${found.plans?.length > 0 && html`<h3>In hand</h3><ul class="plain-list">${found.plans.map((plan) => html`<li>${plan}</li>`)}</ul>`}
    ${subagents.length > 0 && html`<h3>Subagents</h3>
      <ul class="plain-list">${subagents.map(([who, does]) => html`<li><b>${who}</b> ${does}</li>`)}</ul>`}
    ${found.health && html`<h3>Health</h3><${Facts} facts=${found.health} />`}`;
}

export function Comments({ name, card }) {
  const answer = useAnswer(card, "comments", card.comments, 0);
  useEffect(() => markSeen(card), [card.card, card.notable]);
  return html`<${CommentField} name=${name} card=${card} />
    ${answer.data ? html`<${CommentList} comments=${answer.data.comments} />` : html`<${Missing} answer=${answer} />`}`;
}

function CommentList({ comments }) {
  if (!comments.length) return html`<p class="empty">No comments yet.</p>`;
  const newestFirst = [...comments].reverse();
  return html`<ol class="entries">${newestFirst.map((comment) => html`<${Comment} key=${comment.number} comment=${comment} />`)}</ol>`;
}

function Comment({ comment }) {
  const { number, time, kind, by, tone, urgency, text, recorded, found, times } = comment;
  return html`<li data-comment=${number} data-tone=${tone} data-urgency=${urgency} data-kind=${kind}>
    <${Time} of=${time} /><span class="family">${by}</span>
    <div class="entry-text">${text}${times > 1 && html`<span class="times"> ×${times}</span>`}
      ${(recorded || found) && html`<div class="quiet">${dotted(recorded && `recorded: ${recorded}`, found && `found: ${found}`)}</div>`}</div>
  </li>`;
}

function CommentField({ name, card }) {
  const place = `comment ${name}`;
  const say = (label, text) => send(place, label, { verb: "comment", agent: card.agent, text });
  const [word, label] = card.monitoring ? ["stop", "Stop monitoring"] : ["resume", "Resume monitoring"];
  return html`<${TextField} name="comment" hint="Comment on this card…" label=${`Comment on ${name}`} onSubmit=${(text) => say("Comment", text)}>
      ${(commentNow) => html`<${ActButton} data-action="comment" onClick=${commentNow}>Comment<${Keycap}>c</${Keycap}></${ActButton}>
        <${ActButton} data-action=${`${word}-monitoring`} onClick=${() => say(label, word)}>${label}</${ActButton}>`}
    </${TextField}>
    <${Outcome} outcome=${outcomes.value.get(place)} />`;
}

export function Transcript({ card }) {
  const answer = useAnswer(card, "transcript", `${card.column} ${card.headline} ${card.since}`);
  const end = useRef();
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [answer.data === null]);
  if (!answer.data || answer.data.said) return html`<${Missing} answer=${answer} />`;
  if (!answer.data.entries.length) return html`<p class="empty">No transcript yet.</p>`;
  return html`<p class="quiet path" title=${answer.data.path}>${dotted(answer.data.conversation, answer.data.path)}</p>
    <ol class="transcript">${answer.data.entries.map((entry, at) => html`<li key=${at} data-who=${entry.who} data-failed=${entry.failed}>
      <div class="speaker">${dotted(entry.who, entry.tool, entry.failed && "failed")}<${Time} of=${entry.time} /></div>
      <pre>${entry.text}</pre>
    </li>`)}<li ref=${end}></li></ol>`;
}

export function Record({ record }) {
  if (!record.data) return html`<${Missing} answer=${record} />`;
  if (!record.data.record) return html`<p class="empty">The registry has no record of it yet.</p>`;
  return html`<${Facts} facts=${record.data.record} />`;
}

const Facts = ({ facts }) => html`<dl class="facts">
  ${Object.entries(facts).map(([key, value]) => html`<div key=${key}><dt>${key}</dt><dd>${shown(value)}</dd></div>`)}
</dl>`;
const shown = (value) => value === null ? "–" : typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
