// The way to the server: login, questions, and the stream with its retries.
import { applyBoards, gate, loginSaid, offline, screen, session } from "./state.js";
import { perFrame } from "./frames.js";

const TOKEN = "muster-token";
const SILENCE_MS = 15_000;
const RETRY_MS = [500, 1000, 2000, 5000];
const HIDDEN_MS = 60_000;

const listeners = {
  board: perFrame(applyBoards),
  screen: (message) => { screen.value = message; },
  session: (message) => { session.value = message; },
};

/** Adds a listener for a message of the stream, or for "open": a stream that has just begun. */
export function onMessage(name, listener) {
  listeners[name] = listener;
}

/** @returns {Promise<{status: number, data: any}>} status 0: the server did not answer. */
export async function ask(path, body) {
  try {
    const token = localStorage.getItem(TOKEN);
    const answer = await fetch(path, request(body));
    const data = await answer.json().catch(() => ({}));
    if (answer.status === 401 && path !== "/api/login" && token === localStorage.getItem(TOKEN)) showLogin(data.said);
    return { status: answer.status, data };
  } catch {
    return { status: 0, data: { said: "the board's server does not answer" } };
  }
}

function request(body) {
  const headers = { "X-Muster-Token": localStorage.getItem(TOKEN) ?? "" };
  if (body === undefined) return { headers, cache: "no-store" };
  return { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

/** Takes a one-time token, or the whole link that carries it. Returns "" or the reason why not. */
export async function login(tokenOrLink) {
  const token = tokenOrLink.trim().split("#").pop();
  const { status, data } = await ask("/api/login", { token });
  if (status !== 200) return data.said ?? "the server refused the login";
  localStorage.setItem(TOKEN, data.token);
  session.value = data.session;
  open();
  return "";
}

export async function lock() {
  const { status, data } = await ask("/api/lock", {});
  if (status === 200 && data.fleet) session.value = data;
  else await refreshSession();
}

export async function logout() {
  await ask("/api/logout", {});
  showLogin("");
}

async function refreshSession() {
  const { status, data } = await ask("/api/session");
  if (status === 200) session.value = data;
}

function showLogin(said) {
  localStorage.removeItem(TOKEN);
  loginSaid.value = said ?? "";
  gate.value = "login";
  stream.stop();
}

/** Goes in with a token from the address, else with the remembered one. Returns why the token was not taken. */
export async function begin(token) {
  const said = token ? await login(token) : "";
  if (gate.value === "open" && !said) return "";
  if (!localStorage.getItem(TOKEN)) {
    showLogin(said);
    return "";
  }
  refreshSession();
  open();
  return said;
}

function open() {
  gate.value = "open";
  stream.start();
}

/** Says whose screen is wanted, or null. */
export const watchScreen = (agent) => stream.watch(agent);

/** One stream at a time: a new one replaces the old one, and a broken one is begun again for ever. */
const stream = {
  agent: null,
  abort: null,
  start() {
    this.stop();
    this.abort = new AbortController();
    keepListening(this.agent, this.abort.signal);
  },
  stop() {
    this.abort?.abort();
    this.abort = null;
  },
  watch(agent) {
    if (agent === this.agent) return;
    this.agent = agent;
    screen.value = null;
    if (this.abort) this.start();
  },
};

async function keepListening(agent, stopped) {
  for (let failures = 0; !stopped.aborted;) {
    const { heard, said } = await listen(agent, stopped);
    if (stopped.aborted) return;
    failures = heard ? 1 : failures + 1;
    // One lost connection is mended in half a second: only what lasts is worth a line.
    if (failures > 1) offline.value = `This page is offline: ${said || "the board's server does not answer"}. It tries again by itself.`;
    await pause(RETRY_MS[Math.min(failures, RETRY_MS.length) - 1], stopped);
  }
}

/** Reads one stream to its end. Returns whether anything came, and what the server said if it refused. */
async function listen(agent, stopped) {
  const silent = new AbortController();
  const giveUp = () => silent.abort();
  stopped.addEventListener("abort", giveUp);
  let watchdog = setTimeout(giveUp, SILENCE_MS);
  let heard = false;
  let said = "";
  try {
    const path = agent ? `/api/stream?agent=${encodeURIComponent(agent)}` : "/api/stream";
    const answer = await fetch(path, { ...request(), signal: silent.signal });
    if (!answer.ok) ({ said = "" } = await answer.json().catch(() => ({})));
    if (answer.status === 401) showLogin(said);
    if (answer.ok) await readEvents(answer.body, (name, data) => {
      clearTimeout(watchdog);
      watchdog = setTimeout(giveUp, SILENCE_MS);
      if (stopped.aborted) return;
      if (!heard) listeners.open?.();
      heard = true;
      offline.value = "";
      listeners[name]?.(data);
    });
  } catch {
    // A broken stream and an aborted one end alike: the caller decides what follows.
  } finally {
    clearTimeout(watchdog);
    stopped.removeEventListener("abort", giveUp);
  }
  return { heard, said };
}

/** Parses `text/event-stream`: EventSource would do, but it can't send the token's header. */
async function readEvents(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) takeBlock(block, take);
  }
}

function takeBlock(block, take) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (data.length) take(name, JSON.parse(data.join("\n")));
}

/** Waits, but not once the network is back or the stream is not wanted any more. */
function pause(ms, stopped) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const now = () => { clearTimeout(timer); resolve(); };
    stopped.addEventListener("abort", now, { once: true });
    addEventListener("online", now, { once: true });
  });
}

let hiddenTimer = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (gate.value !== "open") return;
  if (document.hidden) hiddenTimer = setTimeout(() => stream.stop(), HIDDEN_MS);
  else if (!stream.abort) stream.start();
});

// Another tab logged in: this one may go on with the same session.
addEventListener("storage", (event) => {
  if (event.key === TOKEN && event.newValue && gate.value === "login") begin("");
});
