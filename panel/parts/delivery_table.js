// Deliveries as rows, each a link to its page.
import { html } from "./html.js";
import { Badge } from "./badge.js";
import { Countdown, Time, clockOf } from "./time.js";
import { labelOf } from "./known.js";
import { shortResult } from "../words/results.js";
import { DELIVERY } from "../words/statuses.js";

const NONE = new Set();

/** `fresh` has the identifiers of the deliveries that have just arrived. */
export function DeliveryTable({ items, types, webhooks, fresh = NONE }) {
  return html`
    <table class="list">
      <caption class="unseen">Deliveries, the newest first</caption>
      <thead><tr><th scope="col">Status</th><th scope="col">Event</th><th scope="col">Webhook</th>
        <th scope="col">Attempts</th><th scope="col">Created</th></tr></thead>
      <tbody>${items.map((item) => html`<${Row} key=${item.id} item=${item} types=${types}
        webhook=${webhooks.find(({ id }) => id === item.webhookIdentifier)} isFresh=${fresh.has(item.id)} />`)}</tbody>
    </table>`;
}

function Row({ item, types, webhook, isFresh }) {
  const { tone, icon, word } = DELIVERY[item.status];
  return html`
    <tr class=${isFresh ? "fresh" : ""}>
      <td><${Badge} tone=${tone} icon=${icon}>${word}<//></td>
      <td class="main"><a class="row-link" href="/panel/deliveries/${item.id}">${labelOf(types, item.type)}</a><small>
        <code>${item.type}</code>${item.subject && html` · ${item.subject}`}</small></td>
      <td class="webhook-cell" data-label="Webhook">
        ${webhook?.name ?? html`<span class="faint">Removed webhook</span>`}<small class="cut">${item.url}</small>
      </td>
      <td data-label="Attempts">${item.attemptCount}${item.attemptCount > 0 &&
        html` <span class="faint">· ${shortResult({ httpStatus: item.lastHttpStatus, error: "no answer" })}</span>`}
        ${item.nextAttemptDate && webhook?.enabled !== false && html`
          <small>next <${Countdown} before="in " until=${item.nextAttemptDate} /></small>`}
      </td>
      <td data-label="Created">
        <${Time} date=${item.createdDate} as="distance" /><small>${clockOf(item.createdDate)}</small>
      </td>
    </tr>`;
}
