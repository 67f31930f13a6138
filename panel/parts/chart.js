// A webhook's performance: its attempts by hour, and its success rate and response times over a day and a week.
import { html } from "./html.js";
import { Trend } from "./trend.js";
import { span } from "./time.js";
import { counted } from "./words.js";
import { share } from "../words/health.js";

const WIDTH = 320;

/** The position of a duration in milliseconds on a scale from 10 ms to 15 s, the longest that an attempt may take. */
const position = (ms) => (Math.log10(Math.min(Math.max(ms, 10), 15_000) / 10) / Math.log10(1500)) * WIDTH;

export const Chart = ({ stats }) => html`
  <${Trend} hours=${stats.hours} />
  <div class="charts">
    <${Period} title="Last 24 hours" summary=${stats.last24Hours} />
    <${Period} title="Last 7 days" summary=${stats.last7Days} />
  </div>`;

function Period({ title, summary }) {
  const { attempts, succeeded, successRate, p50Ms, p95Ms } = summary;
  if (!attempts) return html`<div class="chart"><h3>${title}</h3><p class="faint">No attempts.</p></div>`;
  return html`
    <div class="chart">
      <h3>${title}</h3>
      <p class="figure"><strong>${share(successRate)}
        </strong> <span>of ${counted(attempts, "attempt", "attempts")} succeeded${succeeded < attempts
        ? `, ${counted(attempts - succeeded, "failed", "failed")}` : ""}</span></p>
      <svg viewBox="0 0 ${WIDTH} 10" preserveAspectRatio="none" class="bar" aria-hidden="true">
        <rect class="rest" width=${WIDTH} height="10" /><rect class="share" width=${WIDTH * successRate} height="10" />
      </svg>
      ${p50Ms === undefined ? html`<p class="faint">No attempt received a response.
        </p>` : html`<${Latency} half=${p50Ms} most=${p95Ms} />`}
    </div>`;
}

const Latency = ({ half, most }) => html`
  <p class="figure"><strong>${span(half / 1000)}</strong> <span>median response time;
    95th percentile ${span(most / 1000)}</span></p>
  <svg viewBox="0 0 ${WIDTH} 26" class="latency" aria-hidden="true">
    <path class="scale" d="M0 8H${WIDTH}" />
    ${[10, 100, 1000, 15_000].map((ms) => html`<path class="scale" d="M${position(ms)} 4v8" />
      <text x=${position(ms)} y="23" text-anchor=${ms === 10 ? "start" : ms === 15_000 ? "end" : "middle"}>
      ${span(ms / 1000)}</text>`)}
    <path class="range" d="M${position(half)} 8H${position(most)}" /><circle class="half" cx=${position(half)} cy="8" r="5" />
      <circle class="most" cx=${position(most)} cy="8" r="3.5" />
  </svg>`;
