// A webhook's attempts in the last 24 hours, by hour: bars, and the same numbers as a table.
import { html } from "./html.js";
import { LANGUAGE, counted } from "./words.js";
import { zone } from "./time.js";

const HOUR_MS = 3_600_000;
/** The current hour, and the 24 before it. */
const HOURS = 25;
const BAR = 24;
const GAP = 4;
const HEIGHT = 96;
/** The spacing of the bars with a time below them, which include the first and the last. */
const LABELLED = 6;
const WIDTH = HOURS * (BAR + GAP);

const clock = new Intl.DateTimeFormat(LANGUAGE, { hour: "2-digit", minute: "2-digit" });
const hourOnly = new Intl.DateTimeFormat(LANGUAGE, { hour: "numeric" });
const dayAndClock = new Intl.DateTimeFormat(LANGUAGE, { weekday: "short", hour: "2-digit", minute: "2-digit" });
const number = new Intl.NumberFormat(LANGUAGE);

/** The time of a bar, short enough for a phone; some time zones differ from full hours. */
const short = (start) => (new Date(start).getMinutes() ? clock : hourOnly).format(start);

/** All hours, including those without attempts, which the statistics leave out. */
function filled(hours) {
  const known = new Map(hours.map((hour) => [Date.parse(hour.startDate), hour]));
  const current = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  return Array.from({ length: HOURS }, (_, at) => {
    const start = current - (HOURS - 1 - at) * HOUR_MS;
    const { attempts = 0, succeeded = 0 } = known.get(start) ?? {};
    return { start, attempts, failed: attempts - succeeded };
  });
}

const words = ({ attempts, failed }) => (attempts
  ? `${counted(attempts, "attempt", "attempts")}, ${failed ? `${number.format(failed)} failed` : "none failed"}` : "no attempts");

/** The whole chart in a sentence, for people who cannot see it. */
function summary(hours) {
  const failing = hours.filter(({ failed }) => failed > 0);
  if (!failing.length) return "Attempts by hour: none failed.";
  const worst = failing.toSorted((one, other) => other.failed - one.failed)[0];
  return `Attempts by hour: some failed in ${counted(failing.length, "hour", "hours")}, ` +
    `the most in the hour from ${clock.format(worst.start)} (${words(worst)}).`;
}

export function Trend({ hours }) {
  const all = filled(hours);
  const most = Math.max(...all.map(({ attempts }) => attempts));
  if (!most) return html`<p class="faint">No attempts in the last 24 hours.</p>`;
  return html`
    <figure class="trend">
      <figcaption>Attempts by hour (highest: ${number.format(most)}) <span class="keys"><i class="share"></i> succeeded
        ${" "}<i class="rest"></i> failed</span></figcaption>
      <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${summary(all)}>
        ${all.map((hour, at) => html`<${Bar} key=${hour.start} hour=${hour} at=${at} most=${most} />`)}
      </svg>
      <div class="axis" aria-hidden="true">${all.filter((_, at) => at % LABELLED === 0).map(({ start }) =>
        html`<span key=${start}>${short(start)}</span>`)}</div>
      <details><summary>Show as a table</summary><${Table} hours=${all} /></details>
    </figure>`;
}

function Bar({ hour, at, most }) {
  const { start, attempts, failed } = hour;
  const x = at * (BAR + GAP) + GAP / 2;
  const height = (count) => (count / most) * HEIGHT;
  // A single failure among thousands must be visible.
  const bad = failed && Math.max(height(failed), 3);
  const good = attempts > failed ? Math.max(height(attempts) - bad, 1) : 0;
  return html`
    <g><title>${clock.format(start)}–${clock.format(start + HOUR_MS)}: ${words(hour)}</title>
      <rect class="area" x=${x} width=${BAR} height=${HEIGHT} />
      ${good > 0 && html`<rect class="share" x=${x} width=${BAR} y=${HEIGHT - good} height=${good} />`}
      ${bad > 0 && html`<rect class="rest" x=${x} width=${BAR} y=${HEIGHT - good - bad} height=${bad} />`}
    </g>`;
}

const Table = ({ hours }) => html`
  <table class="hours">
    <caption>Times are in your time zone, ${zone()}. Hours without attempts are left out.</caption>
    <thead><tr><th scope="col">From</th><th scope="col">Attempts</th><th scope="col">Failed</th></tr></thead>
    <tbody>${hours.filter(({ attempts }) => attempts > 0).map(({ start, attempts, failed }) => html`
      <tr key=${start}><th scope="row">${dayAndClock.format(start)}</th><td>${number.format(attempts)}</td>
        <td>${number.format(failed)}</td></tr>`)}</tbody>
  </table>`;
