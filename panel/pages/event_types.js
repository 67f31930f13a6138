// The catalogue of event types: each with its webhooks, and its schema and sample on demand.
import { html, useState } from "../parts/html.js";
import { get } from "../api.js";
import { address, go } from "../address.js";
import { Copy } from "../parts/copy.js";
import { Empty, Waiting } from "../parts/empty.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Text } from "../parts/json.js";
import { TextField } from "../parts/field.js";
import { bySection, eventTypes, sectionLabel, sectionOf, useWebhooks } from "../parts/known.js";
import { counted } from "../parts/words.js";
import { useLoad } from "../parts/load.js";

const wants = (key) => ({ enabled, eventList }) =>
  enabled && (eventList.length === 0 || eventList.includes(key) || eventList.includes(`${sectionOf(key)}.*`) ||
    eventList.some((group) => group.endsWith(".*") && key.startsWith(group.slice(0, -1))));

export default function EventTypes({ query }) {
  const list = useLoad(eventTypes, []);
  const webhooks = useWebhooks();
  const search = query.search ?? "";
  const text = search.trim().toLowerCase();
  const found = (list.data ?? []).filter(({ label, value }) => value.includes(text) ||
    label.toLowerCase().includes(text));
  return html`
    <${Page} title="Event types" lead="All event types that a webhook can receive.">
      <${Problem} refusal=${list.error} retry=${list.reload} />
      <div class="filters"><div class="filter-row fields">
        <${TextField} type="search" label="Search" placeholder=${list.data ? sectionOf(list.data[0].value) : ""} value=${search}
        change=${(value) => go(address("/event-types", { search: value }), { replace: true })} />
        <p class="faint" role="status">${list.data && counted(found.length, "type", "types")}</p></div></div>
      ${list.loading && html`<${Waiting} what="Loading event types" />`}
      ${list.data && found.length === 0 && html`<${Empty} icon="search" title="No matching type"><p>
        <a href="/panel/event-types">Show all types</a></p><//>`}
      ${bySection(found).map(([section, types]) => html`
        <details class="card section" key=${section} open=${Boolean(text) || undefined}>
          <summary><h2>${sectionLabel(section)}</h2> <small>${counted(types.length, "type", "types")}</small></summary>
          <ul class="types">${types.map(({ label, value }) =>
            html`<${Type} key=${value} label=${label} value=${value} webhooks=${webhooks.filter(wants(value))} />`)}
            </ul>
        </details>`)}
    <//>`;
}

const Type = ({ label, value, webhooks }) => html`
  <li>
    <span class="main"><strong>${label}</strong><span class="identifier"><code>${value}</code><${Copy} text=${value}
      what="the type ${value}" quiet /></span></span>
    <span class="faint">${webhooks.length
      ? html`Sent to ${webhooks.map(({ id, name }, at) => html`${at > 0 && ", "}<a href="/panel/webhooks/${id}"><bdi>${name}</bdi>
      </a>`)}` : "No webhook receives it"}</span>
    <a href=${address("/deliveries", { type: value })} aria-label="Deliveries of ${label}">Deliveries</a>
    <${Details} value=${value} />
  </li>`;

/** Reads the type when it is opened first: all types together are a third of a megabyte. */
function Details({ value }) {
  const [opened, open] = useState(false);
  return html`
    <details class="type-details" onToggle=${({ currentTarget }) => currentTarget.open && open(true)}>
      <summary>Sample and schema</summary>
      ${opened && html`<${Schema} value=${value} />`}
    </details>`;
}

function Schema({ value }) {
  const type = useLoad(() => get(`/webhook/event/type/${encodeURIComponent(value)}`), [value]);
  if (type.error) return html`<${Problem} refusal=${type.error} retry=${type.reload} />`;
  if (!type.data) return html`<${Waiting} what="Loading schema" />`;
  const { description, samples, schema, version } = type.data;
  return html`
    <p>${description}</p>
    <${Text} text=${JSON.stringify(samples[0])} what="the sample of ${value}" />
    <p class="faint">The schema of the data, version ${version}:</p>
    <${Text} text=${JSON.stringify(schema)} what="the schema of ${value}" />`;
}
