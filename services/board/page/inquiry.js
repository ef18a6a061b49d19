// What the server answers about one agent.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./connection.js";
import { now } from "./clock.js";
import { html } from "./html.js";
import { offline } from "./state.js";

const SOONEST_MS = 1000;   // a lively agent changes many times a second; its history is asked for at most this often

/**
 * Asks `/api/agents/NAME/<what>`, again whenever `version` changes and when the server is back; what was there stays until
 * the new answer is. `soonest` is for what is rare, and wanted at once.
 * @returns {{data: any, said: string, at: number}} `data` is null until the first answer.
 */
export function useAnswer(card, what, version, soonest = SOONEST_MS) {
  const [answer, setAnswer] = useState({ data: null, said: "", at: 0 });
  const asked = useRef({ at: -Infinity, number: 0 }).current;
  useEffect(() => () => { asked.number += 1; }, [card.agent, what]);   // what is still on its way is about another one
  useEffect(() => {
    const timer = setTimeout(async () => {
      asked.at = now();
      const number = asked.number += 1;
      const { status, data } = await ask(`/api/agents/${encodeURIComponent(card.agent)}/${what}`);
      if (asked.number !== number) return;
      if (status === 200) setAnswer({ data, said: "", at: now() });
      else setAnswer((before) => ({ ...before, said: data.said ?? "the server has no answer" }));
    }, Math.max(0, asked.at + soonest - now()));
    return () => clearTimeout(timer);
  }, [card.agent, what, version, offline.value === ""]);
  return answer;
}

/** The sentence to show instead of data. */
export function Missing({ answer }) {
  return html`<p class="empty">${answer.said || (answer.data ? answer.data.said : "Loading…")}</p>`;
}
