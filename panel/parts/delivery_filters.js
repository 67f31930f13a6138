// The filters of the list of deliveries. They are part of the address, so that a view can be shared.
import { html, useState } from "./html.js";
import { address, go } from "../address.js";
import { Icon } from "./icon.js";
import { SelectField, TextField } from "./field.js";
import { bySection, sectionLabel } from "./known.js";
import { DELIVERY } from "../words/statuses.js";

const HOUR = 3_600_000;
const PERIODS = { "1h": HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR };
const PERIOD_WORDS = [["", "Any time"], ["1h", "Last hour"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"],
  ["between", "From … to …"]];

export const isFiltered = ({ status, type, webhook, event, subject, period, from, to }) =>
  [status, type, webhook, event, subject, period, from, to].some(Boolean);

/** The filters of the API for the query of the address. */
export function filtersOf({ status, type, webhook, event, subject, period, from, to }) {
  const since = PERIODS[period] && new Date(Date.now() - PERIODS[period]).toISOString();
  return { status, type, webhookIdentifier: webhook, eventIdentifier: event, subject, createdFrom: since ?? from,
    createdTo: to };
}

/** Opens the page or the view of an identifier; any other text is a subject, such as a booking's number. */
function find(text, query) {
  const id = text.trim();
  if (id.startsWith("dlv_")) return go(`/panel/deliveries/${encodeURIComponent(id)}`);
  if (id.startsWith("evt_")) return go(address("/deliveries", { event: id }));
  if (id.startsWith("whk_")) return go(address("/deliveries", { ...query, cursor: "", webhook: id }));
  return go(address("/deliveries", { ...query, cursor: "", event: "", subject: id }));
}

export function DeliveryFilters({ query, types, webhooks }) {
  const set = (change) => go(address("/deliveries", { ...query, cursor: "", ...change }));
  const between = query.from || query.to || query.period === "between";
  const period = between ? "between" : query.period ?? "";
  return html`
    <section class="filters" aria-label="Filters">
      <div class="filter-row">
        <${Statuses} chosen=${query.status} choose=${(status) => set({ status })} />
        <${Search} query=${query} />
      </div>
      <div class="filter-row fields">
        <${SelectField} label="Type of event" value=${query.type ?? ""} change=${(type) => set({ type })}
          options=${typeOptions(types, query.type)} />
        <${SelectField} label="Webhook" value=${query.webhook ?? ""} change=${(webhook) => set({ webhook })}
          options=${webhookOptions(webhooks, query.webhook)} />
        <${SelectField} label="Created" value=${period} options=${PERIOD_WORDS}
          change=${(chosen) => set(chosen === "between" ? { period: chosen } : { period: chosen, from: "", to: "" })} />
        ${between && html`
          <${TextField} type="datetime-local" label="From" value=${local(query.from)}
            change=${(value) => set({ period: "", from: utc(value) })} />
          <${TextField} type="datetime-local" label="To" value=${local(query.to)}
            change=${(value) => set({ period: "", to: utc(value) })} />`}
        ${isFiltered(query) && html`<a class="clear" href="/panel/deliveries">Clear filters</a>`}
      </div>
      ${query.subject && html`<p class="fine">Only deliveries about <code>${query.subject}</code>.${" "}
        <a href=${address("/deliveries", { ...query, cursor: "", subject: "" })}>All subjects</a></p>`}
      ${query.event && html`<p class="fine">Only the deliveries of the event <code>${query.event}
        </code>. <a href=${address("/deliveries", { ...query, cursor: "", event: "" })}>All events</a></p>`}
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

function Search({ query }) {
  const [text, type] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (text.trim()) find(text, query);
  };
  return html`
    <form class="search" role="search" onSubmit=${submit}>
      <${Icon} name="search" />
      <input type="search" aria-label="Subject or identifier" placeholder="Subject, such as a booking's number, or id"
        spellcheck="false" autocomplete="off" value=${text} onInput=${(event) => type(event.target.value)} />
    </form>`;
}

/** Types in the order of the catalogue, named with their section. */
function typeOptions(types, chosen) {
  const known = bySection(types).flatMap(([section, members]) =>
    members.map(({ label, value }) => [value, `${sectionLabel(section)} · ${label}`]));
  const strange = chosen && !known.some(([value]) => value === chosen) ? [[chosen, chosen]] : [];
  return [["", "Every type"], ...strange, ...known];
}

function webhookOptions(webhooks, chosen) {
  const known = webhooks.map(({ id, name }) => [id, name]);
  const strange = chosen && !known.some(([id]) => id === chosen) ? [[chosen, `${chosen} (removed)`]] : [];
  return [["", "Every webhook"], ...strange, ...known];
}

/** A time in the format of the browser's field, in the reader's zone. */
function local(date) {
  if (!date || Number.isNaN(Date.parse(date))) return "";
  const time = new Date(date);
  return new Date(time - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const utc = (value) => (value ? new Date(value).toISOString() : "");
