// What stands before the board (log in), and the window that unlocks it for actions.
import { useState } from "preact/hooks";
import { unlocking } from "./commands.js";
import { lock, login, logout } from "./connection.js";
import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { loginSaid, session } from "./state.js";
import { now } from "./clock.js";
import { clockTime } from "./words.js";

export function Login() {
  return html`<main class="gate" data-gate="login">
    <h1>Muster</h1>
    ${loginSaid.value && html`<p data-gate-said>${sentence(loginSaid.value)}</p>`}
    ${!loginSaid.value.includes("muster board") && html`<p>Run <code>muster board</code> in a terminal and open its link.</p>`}
    <${TokenField} label="Or paste the link here" button="Log in" />
  </main>`;
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

function TokenField({ label, button, onDone }) {
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const submit = async () => {
    if (!text.trim()) return;
    const refused = await login(text);
    setSaid(refused);
    if (!refused) onDone?.();
  };
  return html`<div class="token">
    <label>${label}<input type="text" name="token" autocomplete="off" spellcheck=${false} value=${text}
      onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => { if (event.key === "Enter") submit(); }} /></label>
    <button class="primary" data-action="login" onClick=${submit}>${button}</button>
    <p class="refusal" role="alert">${said}</p>
  </div>`;
}

export function Unlock() {
  if (unlocking.value === null) return null;
  const close = () => { unlocking.value = null; };
  return session.value?.may_act ? html`<${Unlocked} close=${close} />` : html`<${Locked} reason=${unlocking.value} close=${close} />`;
}

function Locked({ reason, close }) {
  return html`<${Dialog} title="This page only looks" onClose=${close}>
    ${reason && html`<p>${reason}</p>`}
    <p>To approve, send or stop from here, run <code>muster board --act</code> in a terminal and open its link, or paste it below.
      The page locks itself 30 minutes after the last action.</p>
    <${TokenField} label="Link or token" button="Unlock" onDone=${close} />
    <div class="row"><button class="plain" data-action="logout" onClick=${() => { close(); logout(); }}>Log out</button></div>
  </${Dialog}>`;
}

function Unlocked({ close }) {
  const { acts_until: until } = session.value;
  return html`<${Dialog} title="This page may act" onClose=${close}>
    <p>${until ? `It locks itself at ${clockTime(until, now())}, or` : "It locks itself"} 30 minutes after the last action.</p>
    <div class="row">
      <button data-action="lock" onClick=${() => { close(); lock(); }}>Lock now</button>
      <button class="plain" data-action="logout" onClick=${() => { close(); logout(); }}>Log out</button>
    </div>
  </${Dialog}>`;
}
