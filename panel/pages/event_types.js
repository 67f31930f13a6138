// The catalogue of event types: each with its webhooks, and its schema and sample on demand.
import { html, useId, useState } from "../parts/html.js";
import { get } from "../api.js";
import { address, go } from "../address.js";
import { Copy } from "../parts/copy.js";
import { Empty, Waiting } from "../parts/empty.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Text } from "../parts/json.js";
import { SelectField, TextField } from "../parts/field.js";
import { bySection, eventTypes, listIncludes, sectionLabel, sectionOf, useWebhooks } from "../parts/known.js";
import { counted } from "../parts/words.js";
import { useLoad } from "../parts/load.js";

const wants = (key) => ({ enabled, eventList }) => enabled && listIncludes(eventList, key);

export default function EventTypes({ query }) {
  const list = useLoad(eventTypes, []);
  const webhooks = useWebhooks();
  const search = query.search ?? "";
  const text = search.trim().toLowerCase();
  const found = (list.data ?? []).filter(({ label, value }) => (!query.section || sectionOf(value) === query.section) &&
    (value.includes(text) || label.toLowerCase().includes(text)));
  const set = (change) => go(address("/event-types", { ...query, ...change }), { replace: true });
  const sections = bySection(list.data ?? []).map(([section]) => [section, sectionLabel(section)]);
  return html`
    <${Page} title="Event types" lead="All event types that a webhook can receive.">
      <${Problem} refusal=${list.error} retry=${list.reload} />
      <div class="filters"><div class="filter-row fields">
        <${TextField} type="search" label="Search" placeholder=${list.data ? sectionOf(list.data[0].value) : ""} value=${search} change=${(value) => set({ search: value })} />
        <${SelectField} label="Section" value=${query.section ?? ""} options=${[["", "All sections"], ...sections]}
          change=${(section) => set({ section })} />
        <p class="faint" role="status">${list.data && counted(found.length, "type", "types")}</p></div></div>
      ${list.loading && html`<${Waiting} what="Loading event types" />`}
      ${list.data && found.length === 0 && html`<${Empty} icon="search" title="No matching type"><p>
        <a href="/panel/event-types">Show all types</a></p><//>`}
      ${found.length > 0 && html`
        <table class="list types">
          <caption class="unseen">Event types</caption>
          <thead><tr><th scope="col">Event type</th><th scope="col">Webhooks</th><th scope="col">Details</th></tr></thead>
          <tbody>${found.map(({ label, value }) => html`
            <${Type} key=${value} label=${label} value=${value} webhooks=${webhooks.filter(wants(value))} />`)}</tbody>
        </table>`}
    <//>`;
}

function Type({ label, value, webhooks }) {
  const [isOpen, open] = useState(false);
  const name = useId();
  return html`
    <tr>
      <td class="main"><span>${label}</span> <span class="identifier"><code>${value}</code><${Copy} text=${value}
        what="the type ${value}" quiet /></span></td>
      <td class="webhook-cell">${webhooks.length
        ? webhooks.map(({ id, name: hook }, at) => html`${at > 0 && ", "}<a href="/panel/webhooks/${id}"><bdi>${hook}</bdi></a>`)
        : html`<span class="faint">No webhook</span>`}</td>
      <td><a href=${address("/deliveries", { type: value })} aria-label="Deliveries of ${label}">Deliveries</a>${" "}
        <button type="button" class="small" aria-expanded=${isOpen ? "true" : "false"} aria-controls=${isOpen ? name : undefined}
          aria-label="Sample and schema of ${label}" onClick=${() => open(!isOpen)}>Sample and schema</button></td>
    </tr>
    ${isOpen && html`<tr class="type-details"><td colspan="3" id=${name}><${Schema} value=${value} /></td></tr>`}`;
}

/** Reads the type when it is opened, since all types together are a third of a megabyte. */
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
