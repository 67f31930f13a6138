// Deliveries as rows of one line, each a link to its page.
import { html, useLayoutEffect, useRef } from "./html.js";
import { may } from "../session.js";
import { Badge, TestBadge } from "./badge.js";
import { Time, clockOf } from "./time.js";
import { Wait } from "./wait.js";
import { labelOf } from "./known.js";
import { result as resultOf, shortResult } from "../words/results.js";
import { DELIVERY } from "../words/statuses.js";

const NONE = new Set();

/**
 * `fresh` contains the identifiers of deliveries that have just arrived. `isStale` means that other rows are being
 * loaded. Without a `selection`, no row can be selected. With `byEvent`, each event is a heading with a row for each
 * webhook.
 */
export function DeliveryTable({ items, types, webhooks, fresh = NONE, selection, isStale, byEvent }) {
  const canSelect = selection && may("integrations.write");
  const row = (item) => html`<${Row} key=${item.id} item=${item} types=${types} byEvent=${byEvent}
    webhook=${webhooks?.find(({ id }) => id === item.webhookIdentifier)} areKnown=${webhooks !== undefined}
    isFresh=${fresh.has(item.id)} selection=${canSelect && selection} />`;
  return html`
    <table class="list dense ${isStale ? "stale" : ""} ${byEvent ? "by-event" : ""}" aria-busy=${isStale ? "true" : undefined}>
      <caption class="unseen">Deliveries, newest first${byEvent && ", by event"}</caption>
      <thead><tr>
        ${canSelect && html`<th class="pick"><${PickAll} ids=${items.map(({ id }) => id)} selection=${selection} /></th>`}
        <th scope="col" class="state">Status</th><th scope="col">${byEvent ? "Webhook" : "Event"}</th>
        <th scope="col" class="subject">${byEvent ? "Last result" : "Subject"}</th>
        ${!byEvent && html`<th scope="col" class="webhook-cell">Webhook</th>`}
        <th scope="col" class="tries">Attempts, next step</th><th scope="col" class="when">${byEvent ? "Last change" : "Created"}
        </th></tr></thead>
      ${byEvent ? events(items).map((those) => html`
        <tbody key=${those[0].eventIdentifier}><${EventRow} item=${those[0]} types=${types} columns=${canSelect ? 6 : 5} />
          ${those.map(row)}</tbody>`)
        : html`<tbody>${items.map(row)}</tbody>`}
    </table>`;
}

/** The deliveries of each event together. */
function events(items) {
  const all = new Map();
  for (const item of items) all.set(item.eventIdentifier, [...(all.get(item.eventIdentifier) ?? []), item]);
  return [...all.values()];
}

const EventRow = ({ item: { createdDate, eventIdentifier, subject, type }, types, columns }) => html`
  <tr class="event-row"><th scope="rowgroup" colspan=${columns} title="${type}, ${eventIdentifier}">${labelOf(types, type)}${" "}
    <code>${type}</code>${subject && html` · <bdi>${subject}</bdi>`} · <span class="faint"><${Time} date=${createdDate} as="both" />
    </span></th></tr>`;

/** The box that selects all rows, or none. */
function PickAll({ ids, selection: { chosen, set } }) {
  const box = useRef(null);
  const count = ids.filter((id) => chosen.has(id)).length;
  useLayoutEffect(() => { box.current.indeterminate = count > 0 && count < ids.length; }, [count, ids.length]);
  return html`<label class="pick-box"><input type="checkbox" ref=${box} aria-label="Select all deliveries on this page"
    checked=${count === ids.length} onChange=${(event) => set(ids, event.target.checked)} /></label>`;
}

function Row({ item, types, webhook, areKnown, isFresh, selection, byEvent }) {
  const { tone, icon, word } = DELIVERY[item.status];
  const label = labelOf(types, item.type);
  const isChosen = selection && selection.chosen.has(item.id);
  const name = webhook?.name ?? (areKnown ? "Removed webhook" : "…");
  const target = [webhook?.name, item.url].filter(Boolean).join("\n");
  return html`
    <tr class="${isFresh ? "fresh" : ""} ${isChosen ? "chosen" : ""}">
      ${selection && html`<td class="pick"><label class="pick-box"><input type="checkbox" checked=${isChosen}
        aria-label="Select ${byEvent ? name : label}${item.subject ? `, ${item.subject}` : ""}"
        onChange=${(event) => selection.set([item.id], event.target.checked)} /></label></td>`}
      <td class="state"><${Badge} tone=${tone} icon=${icon}>${word}<//></td>
      ${byEvent ? html`
        <td class="main" dir="auto" title=${target}><${TestBadge} delivery=${item} /><a class="row-link"
          href="/panel/deliveries/${item.id}">${name}</a></td>
        <td class="subject">${lastResult(item)}</td>`
      : html`
        <td class="main" title="${label}, ${item.type}"><${TestBadge} delivery=${item} /><a class="row-link"
          href="/panel/deliveries/${item.id}">${label}</a>${" "}<code>${item.type}</code></td>
        <td class="subject" dir="auto" title=${item.subject}>${item.subject}</td>
        <td class="webhook-cell" dir="auto" title=${target}>${webhook ? name : html`<span class="faint">${name}</span>`}</td>`}
      <td class="tries" title=${lastResult(item)}><${Tries} ...${{ item, webhook, byEvent }}
        result=${selection && selection.results.get(item.id)} /></td>
      <td class="when">${byEvent ? html`<${Time} date=${item.lastUpdate} as="distance" />` : html`<span class="faint">${
        clockOf(item.createdDate)} · </span><${Time} date=${item.createdDate} as="distance" />`}</td>
    </tr>`;
}

/** A delivery without a response was confirmed by a reader of the feed. */
const lastAttempt = ({ lastHttpStatus, lastErrorCode, status }) => ({ httpStatus: lastHttpStatus, errorCode: lastErrorCode,
  confirmed: status === "delivered" && !lastHttpStatus });

const lastResult = (item) => (item.attemptCount > 0 ? resultOf(lastAttempt(item)) : undefined);

/** The attempts of a delivery, or the result of its resending. */
function Tries({ item, webhook, byEvent, result }) {
  if (result === "sending") return html`<span class="faint">Resending…</span>`;
  if (result?.detail) return html`<span class="refused" title=${result.detail}>Not resent: ${result.detail}</span>`;
  const last = !byEvent && item.attemptCount > 0 && shortResult(lastAttempt(item));
  const isWaiting = !result?.attempt && (item.waitingFor || item.nextAttemptDate) && webhook?.enabled !== false;
  return html`${item.attemptCount}<span class="faint">${last && ` · ${last}`}${
    result && html` · <span class="sent">resent</span>`}${
    isWaiting && html` · <${Wait} delivery=${item} webhook=${webhook} />`}</span>`;
}
