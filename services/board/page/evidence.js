// What the server answers about one agent, and its evidence: who says what, and which was believed.
import { useEffect, useState } from "preact/hooks";
import { ask } from "./connection.js";
import { Ticking, now } from "./clock.js";
import { html } from "./html.js";
import { dotted, span } from "./words.js";

const SOONEST_MS = 1000;   // a lively agent changes many times a second; its history is asked for at most this often

/**
 * Asks `/api/agents/NAME/<what>`, again whenever `version` changes; what was there stays until the new answer is.
 * @returns {{data: any, said: string, at: number}} `data` is null until the first answer.
 */
export function useAnswer(card, what, version) {
  const [answer, setAnswer] = useState({ data: null, said: "", at: 0 });
  useEffect(() => {
    let wanted = true;
    const timer = setTimeout(async () => {
      const { status, data } = await ask(`/api/agents/${encodeURIComponent(card.agent)}/${what}`);
      if (!wanted) return;
      if (status === 200) setAnswer({ data, said: "", at: now() });
      else setAnswer((before) => ({ ...before, said: data.said ?? "the server has no answer" }));
    }, answer.at ? Math.max(0, answer.at + SOONEST_MS - now()) : 0);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [card.agent, what, version]);
  return answer;
}

/** The sentence to show instead of data, or null when there is data. */
export function Missing({ answer }) {
  return html`<p class="empty">${answer.said || (answer.data ? answer.data.said : "Loading…")}</p>`;
}

export function EvidenceRows({ answer, short = false }) {
  const found = answer.data?.found;
  if (!found) return answer.data || answer.said ? html`<${Missing} answer=${answer} />` : null;
  return html`<table class="evidence"><thead class=${short ? "unseen" : ""}><tr><th>source</th><th>says</th><th>why</th></tr></thead><tbody>
    ${found.evidence.map((row) => html`<tr key=${row.source + row.rule + row.says} data-believed=${row.believed}>
      <td>${row.source}</td><td>${row.says}</td>
      <td>${row.why}${row.age_s !== null && html`<${Ticking} text=${() => `, ${span(row.age_s * 1000 + now() - answer.at)} ago`} />`}${remarks(row, short)}</td>
    </tr>`)}
  </tbody></table>`;
}

function remarks(row, short) {
  const remark = dotted(row.believed ? "believed" : row.weak && "advice only", !short && row.because, !short && row.rule && `rule ${row.rule}`);
  return remark && ` · ${remark}`;
}
