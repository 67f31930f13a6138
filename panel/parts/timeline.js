// A delivery's attempts on a timeline. Gaps last seconds or hours, so a gap's length in the picture is the logarithm of
// its duration. The list of attempts is the accessible alternative.
import { html, useLayoutEffect, useRef, useState } from "./html.js";
import { span, useNow } from "./time.js";
import { isInterrupted, shortResult, succeeded } from "../words/results.js";

const HEIGHT = 118;
const LINE = 52;
const MARGIN = 44;
/** The minimum stretch, below which labels would overlap. */
const LEAST_STRETCH = 0.7;
const MARKS = { good: "M-5 0.5 -1.5 4 5 -4", bad: "M-4 -4 4 4M4 -4 -4 4", next: "M0 -5V0L3.5 2" };

/** The distance between two moments in the picture, before it is stretched to the width. */
const gap = (seconds) => 62 + 26 * Math.log10(1 + Math.max(seconds, 0));

/** The points of the picture: the creation, the attempts, and the next attempt or check of the paused webhook. */
function pointsOf({ createdDate, attempts, nextAttemptDate, waitingFor }) {
  const at = (date) => new Date(date).getTime();
  const made = attempts.map((attempt) =>
    ({ kind: succeeded(attempt) ? "good" : "bad", time: at(attempt.attemptDate), attempt }));
  const next = nextAttemptDate ? [{ kind: "next", label: waitingFor === "breaker" ? "check" : "next",
    time: Math.max(at(nextAttemptDate), made.at(-1)?.time ?? 0) }] : [];
  return [{ kind: "created", time: at(createdDate) }, ...made, ...next];
}

/** The points with their positions; the gaps are stretched, or squeezed a little, to fit the width. */
function placed(points, width) {
  const gaps = points.slice(1).map((point, index) => gap((point.time - points[index].time) / 1000));
  const whole = gaps.reduce((sum, each) => sum + each, 0);
  const stretch = Math.min(Math.max((width - 2 * MARGIN) / whole, LEAST_STRETCH), 2.4) || 1;
  let x = MARGIN;
  return points.map((point, index) => {
    x += index ? gaps[index - 1] * stretch : 0;
    return { ...point, x };
  });
}

export function Timeline({ delivery, chosen, choose }) {
  const box = useRef(null);
  const [width, measure] = useState(0);
  const [isCut, cut] = useState(false);
  const now = useNow();
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([{ contentRect }]) => measure(contentRect.width));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const points = placed(pointsOf(delivery), width);
  const end = points.at(-1).x + MARGIN;
  useLayoutEffect(() => { box.current.scrollLeft = end; }, [delivery.attemptCount, width]);
  return html`
    <div class="timeline ${isCut ? "cut-off" : ""}" ref=${box} tabIndex="0"
      onScroll=${() => cut(box.current.scrollLeft > 8)} role="group"
      aria-label="Timeline of the attempts, as in the list below">
      <svg width=${end} height=${HEIGHT} viewBox="0 0 ${end} ${HEIGHT}" aria-hidden="true">
        ${points.slice(1).map((point, index) => html`<${Gap} from=${points[index]} to=${point} />`)}
        <${Now} points=${points} now=${now} />
        ${points.map((point) => html`<${Point}
          ...${{ point, now, chosen: point.attempt?.attemptNumber === chosen, choose }} />`)}
      </svg>
    </div>`;
}

function Gap({ from, to }) {
  const seconds = (to.time - from.time) / 1000;
  const wide = to.x - from.x;
  return html`
    <path class="line ${to.kind === "next" ? "ahead" : ""}" d="M${from.x} ${LINE}H${to.x}" />
    ${seconds >= 0.05 && wide > 50 && html`<text class="gap" x=${(from.x + to.x) / 2} y=${LINE - 9}>${span(seconds)}
      </text>`}`;
}

/** The current time, between the last attempt and the next. */
function Now({ points, now }) {
  const [last, next] = points.slice(-2);
  if (next?.kind !== "next" || now >= next.time) return null;
  const share = Math.max((now - last.time) / (next.time - last.time), 0);
  const x = last.x + 16 + share * (next.x - last.x - 32);
  return html`<path class="line" d="M${last.x} ${LINE}H${x}" /><path class="now" d="M${x} ${LINE - 5}v10" />`;
}

function Point({ point: { kind, label, x, time, attempt }, now, chosen, choose }) {
  if (kind === "created") {
    return html`<g transform="translate(${x} ${LINE})" class="point created"><circle r="4" />
      <text y="34" class="label">created</text></g>`;
  }
  if (kind === "next") {
    const left = (time - now) / 1000;
    return html`
      <g transform="translate(${x} ${LINE})" class="point next"><circle r="12" /><path d=${MARKS.next} />
        <text y="34" class="label">${label}</text><text y="50" class="fine">
          ${left > 0 ? `in ${span(Math.ceil(left))}` : "now"}</text></g>`;
  }
  return html`
    <g transform="translate(${x} ${LINE})" class="point ${kind} ${chosen ? "chosen" : ""}"
      onClick=${() => choose(attempt.attemptNumber)}>
      ${chosen && html`<circle r="17" class="ring" />`}
      <circle r="12" /><path d=${MARKS[kind]} />
      <text y="34" class="label">${shortResult(attempt)}</text><text y="50" class="fine">
        ${isInterrupted(attempt) ? "" : span(attempt.durationMs / 1000)}</text>
      <text y="-26" class="number">#${attempt.attemptNumber}</text>
    </g>`;
}
