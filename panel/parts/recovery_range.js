// A time range, such as that of deliveries to recover: some suggestions, or two times.
import { html } from "./html.js";
import { SelectField, TextField } from "./field.js";
import { zone } from "./time.js";

const HOUR_MS = 3_600_000;
const BETWEEN = "between";

const ago = (ms) => new Date(Date.now() - ms).toISOString();
const midnight = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();

/** The ranges that can be chosen, each with label and start; the last is the widest. */
export function rangesFor(webhook, delivery) {
  const recent = [
    { key: "hour", label: "The last hour", since: ago(HOUR_MS) },
    { key: "today", label: "Today, since midnight", since: midnight() },
    { key: "day", label: "The last 24 hours", since: ago(24 * HOUR_MS) },
  ].filter(({ since }) => webhook.createdDate < since);
  return [
    ...(delivery ? [{ key: "delivery", label: "Since this delivery", since: delivery.createdDate }] : []),
    ...recent,
    { key: "webhook", label: "Since the webhook was created", since: webhook.createdDate },
  ];
}

/** Ranges of some days, the shortest first. */
export const daysBack = () => [
  { key: "day", label: "The last 24 hours", days: 1 },
  { key: "week", label: "The last 7 days", days: 7 },
  { key: "month", label: "The last 30 days", days: 30 },
].map(({ days, ...range }) => ({ ...range, since: ago(days * 24 * HOUR_MS) }));

/** The range that is proposed first. */
export const proposed = (ranges) => ranges.find(({ key }) => !["hour", "today"].includes(key));

/** The chosen range with its times. Has no start while the two times are incomplete or in the wrong order. */
export function rangeOf(ranges, { key, from, to }) {
  if (key !== BETWEEN) return ranges.find((range) => range.key === key);
  const isReady = from && !faultOf({ from, to });
  return { key, since: isReady ? instant(from) : undefined, until: isReady && to ? instant(to) : undefined };
}

const instant = (local) => new Date(local).toISOString();

const faultOf = ({ from, to }) => (from && to && new Date(from) >= new Date(to) ? "must be after From" : "");

/** The fields of the range; `chosen` is `{key, from, to}`, with times in the format of a browser's field. */
export function Range({ ranges, chosen, choose }) {
  const { key, from = "", to = "" } = chosen;
  const set = (member) => (value) => choose((before) => ({ ...before, [member]: value }));
  return html`
    <${SelectField} label="Created" value=${key} change=${set("key")}
      options=${[...ranges.map((range) => [range.key, range.label]), [BETWEEN, "Custom range"]]} />
    ${key === BETWEEN && html`
      <div class="range">
        <${TextField} type="datetime-local" label="From" value=${from}
          change=${set("from")} />
        <${TextField} type="datetime-local" label="To" value=${to} fault=${faultOf(chosen)}
          hint="Empty: until now." change=${set("to")} />
      </div>
      <p class="hint">Times are in your time zone, ${zone()}.</p>`}`;
}
