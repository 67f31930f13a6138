// The filters for the list of deliveries. They are part of the address, so a view can be shared.
import { html, useState } from "./html.js";
import { address, go } from "../address.js";
import { Icon } from "./icon.js";
import { SelectField, TextField } from "./field.js";
import { typeOptions } from "./known.js";
import { useMedia } from "./load.js";
import { Search } from "./search.js";
import { DELIVERY } from "../words/statuses.js";
import { RESULTS } from "../words/results.js";

const HOUR = 3_600_000;
/** The beginning of each period, in milliseconds. */
const PERIODS = {
  "1h": () => Date.now() - HOUR,
  today: () => new Date().setHours(0, 0, 0, 0),
  "24h": () => Date.now() - 24 * HOUR,
  "7d": () => Date.now() - 168 * HOUR,
};
const PERIOD_WORDS = [["", "Any time"], ["1h", "Last hour"], ["today", "Today"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"],
  ["between", "Custom range"]];
const NAMES = ["status", "type", "webhook", "event", "subject", "result", "period", "from", "to"];

/** The number of filters of a query, without those of the search field. */
const countOf = (query) => NAMES.filter((name) => query[name] && !["event", "subject", "to"].includes(name)).length;

export const isFiltered = (query) => NAMES.some((name) => query[name]);

/** The filters of the API for the query of the address. */
export function filtersOf({ status, type, webhook, event, subject, result, period, from, to }) {
  const since = Object.hasOwn(PERIODS, period ?? "") && new Date(PERIODS[period]()).toISOString();
  const last = result && (/^\d+$/.test(result) ? { lastHttpStatus: result } : { lastErrorCode: result });
  return { status, type, webhookIdentifier: webhook, eventIdentifier: event, subject, ...last, createdFrom: since || from,
    createdUntil: to };
}

export function DeliveryFilters({ query, types, webhooks }) {
  const isWide = useMedia("(min-width: 44rem)");
  const [isOpen, open] = useState(false);
  const set = (change) => go(address("/deliveries", { ...query, cursor: "", ...change }));
  const between = query.from || query.to || query.period === "between";
  const period = between ? "between" : query.period ?? "";
  const fields = html`
    <div class="filter-row fields">
      <${SelectField} label="Event type" value=${query.type ?? ""} change=${(type) => set({ type })}
        options=${typeOptions(types, query.type)} />
      <${SelectField} label="Webhook" value=${query.webhook ?? ""} change=${(webhook) => set({ webhook })}
        options=${webhookOptions(webhooks, query.webhook)} />
      <${SelectField} label="Last response" value=${query.result ?? ""} change=${(result) => set({ result })}
        options=${resultOptions(query.result)} />
      <${SelectField} label="Created" value=${period} options=${PERIOD_WORDS}
        change=${(chosen) => set(chosen === "between" ? { period: chosen } : { period: chosen, from: "", to: "" })} />
      ${between && html`
        <${TextField} type="datetime-local" label="From" value=${local(query.from)}
          change=${(value) => set({ period: "", from: utc(value) })} />
        <${TextField} type="datetime-local" label="To" value=${local(query.to)}
          change=${(value) => set({ period: "", to: utc(value) })} />`}
      ${isFiltered(query) && html`<a class="clear" href="/panel/deliveries">Clear filters</a>`}
    </div>`;
  const statuses = html`<${Statuses} chosen=${query.status} choose=${(status) => set({ status })} />`;
  const count = countOf(query);
  return html`
    <section class="filters" aria-label="Filters">
      <div class="filter-row">${isWide && statuses}<${Search}
        key=${query.subject ?? query.event} ...${{ query, types, webhooks }} /></div>
      ${isWide ? fields : html`
        <details class="folded" open=${isOpen} onToggle=${(event) => open(event.target.open)}>
          <summary>Filters${count ? ` (${count})` : ""}</summary>${statuses}${fields}</details>`}
    </section>`;
}

function Statuses({ chosen = "", choose }) {
  const on = new Set(chosen.split(",").filter(Boolean));
  const toggle = (status) => {
    const next = new Set(on);
    if (!next.delete(status)) next.add(status);
    choose([...next].join(","));
  };
  return html`
    <div class="chips" role="group" aria-label="Status">
      <button type="button" aria-pressed=${on.size === 0 ? "true" : "false"} onClick=${() => choose("")}>All</button>
      ${Object.entries(DELIVERY).map(([status, { word, icon, tone }]) => html`
        <button type="button" key=${status} class=${tone} aria-pressed=${on.has(status) ? "true" : "false"}
          onClick=${() => toggle(status)}><${Icon} name=${icon} />${word}</button>`)}
    </div>`;
}

function webhookOptions(webhooks, chosen) {
  const known = webhooks.map(({ id, name }) => [id, name]);
  const strange = chosen && !known.some(([id]) => id === chosen) ? [[chosen, `${chosen} (removed)`]] : [];
  return [["", "All webhooks"], ...strange, ...known];
}

function resultOptions(chosen) {
  const strange = chosen && !RESULTS.some(([value]) => value === chosen) ? [[chosen, chosen]] : [];
  return [["", "All responses"], ...strange, ...RESULTS];
}

/** A time in the format of the browser's input field, in the browser's time zone. */
function local(date) {
  if (!date || Number.isNaN(Date.parse(date))) return "";
  const time = new Date(date);
  return new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const utc = (value) => (value ? new Date(value).toISOString() : "");
