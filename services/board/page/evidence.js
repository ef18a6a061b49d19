// The evidence for what an agent is doing: which source says what, why, and which was believed.
import { Ticking, now } from "./clock.js";
import { html } from "./html.js";
import { Missing } from "./inquiry.js";
import { dotted, shortened, span } from "./words.js";

const LONGEST_WHY = 140;   // in the short form: a transcript tells the whole prompt

export function EvidenceRows({ answer, short = false }) {
  const found = answer.data?.found;
  if (!found) return answer.data || answer.said ? html`<${Missing} answer=${answer} />` : null;
  return html`<table class="evidence">
    <thead class=${short ? "unseen" : ""}><tr><th>source</th><th>says</th><th>why</th></tr></thead>
    <tbody>${found.evidence.map((row) => html`<tr key=${row.source + row.rule + row.says} data-believed=${row.believed}>
      <td>${row.source}</td><td>${row.says.replaceAll("_", " ")}</td>
      <td title=${row.why}>${short ? shortened(row.why, LONGEST_WHY) : row.why}${row.age_s !== null
        && html`<${Ticking} text=${() => ageText(row, answer)} />`}${remarks(row, short)}</td>
    </tr>`)}</tbody>
  </table>`;
}

const ageText = (row, answer) => `, ${span(row.age_s * 1000 + now() - answer.at)} ago`;

function remarks(row, short) {
  const belief = row.believed ? "believed" : row.weak && "advice only";
  const remark = short ? dotted(belief) : dotted(belief, row.because, row.rule && `rule ${row.rule}`);
  return remark && ` · ${remark}`;
}
