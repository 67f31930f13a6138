// Deliveries as rows of one line, each a link to its page.
import { html, useLayoutEffect, useRef } from "./html.js";
import { may } from "../session.js";
import { Badge, TestBadge } from "./badge.js";
import { Countdown, Time, clockOf } from "./time.js";
import { labelOf } from "./known.js";
import { result as resultOf, shortResult } from "../words/results.js";
import { DELIVERY } from "../words/statuses.js";

const NONE = new Set();

/**
 * `fresh` has the identifiers of deliveries that have just arrived. `isStale` means that other rows are being loaded.
 * Without a `selection`, no row can be selected.
 */
export function DeliveryTable({ items, types, webhooks, fresh = NONE, selection, isStale }) {
  const canSelect = selection && may("integrations.write");
  return html`
    <table class="list dense ${isStale ? "stale" : ""}" aria-busy=${isStale ? "true" : undefined}>
      <caption class="unseen">Deliveries, newest first</caption>
      <thead><tr>
        ${canSelect && html`<th class="pick"><${PickAll} ids=${items.map(({ id }) => id)} selection=${selection} /></th>`}
        <th scope="col" class="state">Status</th><th scope="col">Event</th><th scope="col" class="subject">Subject</th>
        <th scope="col" class="webhook-cell">Webhook</th><th scope="col" class="tries">Attempts</th>
        <th scope="col" class="when">Created</th></tr></thead>
      <tbody>${items.map((item) => html`<${Row} key=${item.id} item=${item} types=${types}
        webhook=${webhooks?.find(({ id }) => id === item.webhookIdentifier)} areKnown=${webhooks !== undefined}
        isFresh=${fresh.has(item.id)} selection=${canSelect && selection} />`)}</tbody>
    </table>`;
}

/** The box that selects all rows, or none. */
function PickAll({ ids, selection: { chosen, set } }) {
  const box = useRef(null);
  const count = ids.filter((id) => chosen.has(id)).length;
  useLayoutEffect(() => { box.current.indeterminate = count > 0 && count < ids.length; }, [count, ids.length]);
  return html`<label class="pick-box"><input type="checkbox" ref=${box} aria-label="Select all deliveries on this page"
    checked=${count === ids.length} onChange=${(event) => set(ids, event.target.checked)} /></label>`;
}

function Row({ item, types, webhook, areKnown, isFresh, selection }) {
  const { tone, icon, word } = DELIVERY[item.status];
  const label = labelOf(types, item.type);
  const isChosen = selection && selection.chosen.has(item.id);
  return html`
    <tr class="${isFresh ? "fresh" : ""} ${isChosen ? "chosen" : ""}">
      ${selection && html`<td class="pick"><label class="pick-box"><input type="checkbox" checked=${isChosen}
        aria-label="Select ${label}${item.subject ? `, ${item.subject}` : ""}"
        onChange=${(event) => selection.set([item.id], event.target.checked)} /></label></td>`}
      <td class="state"><${Badge} tone=${tone} icon=${icon}>${word}<//></td>
      <td class="main" title="${label}, ${item.type}"><${TestBadge} delivery=${item} /><a class="row-link"
        href="/panel/deliveries/${item.id}">${label}</a>${" "}<code>${item.type}</code></td>
      <td class="subject" dir="auto" title=${item.subject}>${item.subject}</td>
      <td class="webhook-cell" dir="auto" title=${[webhook?.name, item.url].filter(Boolean).join("\n")}>${webhook?.name
        ?? html`<span class="faint">${areKnown ? "Removed webhook" : "…"}</span>`}</td>
      <td class="tries" title=${lastResult(item)}><${Tries} item=${item} webhook=${webhook} result=${selection && selection.results.get(item.id)} /></td>
      <td class="when"><span class="faint">${clockOf(item.createdDate)} · </span><${Time} date=${item.createdDate}
        as="distance" /></td>
    </tr>`;
}

/** A delivery without a response was confirmed by a reader of the feed. */
const lastAttempt = ({ lastHttpStatus, lastErrorCode, status }) => ({ httpStatus: lastHttpStatus, errorCode: lastErrorCode,
  confirmed: status === "delivered" && !lastHttpStatus });

const lastResult = (item) => (item.attemptCount > 0 ? resultOf(lastAttempt(item)) : undefined);

/** The attempts of a delivery, or the result of its resending. */
function Tries({ item, webhook, result }) {
  if (result === "sending") return html`<span class="faint">Resending…</span>`;
  if (result?.detail) return html`<span class="refused" title=${result.detail}>Not resent: ${result.detail}</span>`;
  const last = item.attemptCount > 0 && shortResult(lastAttempt(item));
  const next = item.nextAttemptDate && webhook?.enabled !== false && html`<${Countdown} before="next in " brief
    over=${webhook?.deliveryState === "paused" ? "paused" : "due now"} until=${item.nextAttemptDate} />`;
  const isResent = result === "sent" || result?.attempt;
  return html`${item.attemptCount}<span class="faint">${last && ` · ${last}`}${(isResent || next) && " · "}${
    isResent ? html`<span class="sent">resent</span>` : next}</span>`;
}
