// A delivery's page: its status and cause, its attempts, its event, and what can be done with it.
import { html, useState } from "../parts/html.js";
import { get, getText, post } from "../api.js";
import { address, go } from "../address.js";
import { Action } from "../parts/action.js";
import { Attempts } from "../parts/attempts.js";
import { Badge, TestBadge } from "../parts/badge.js";
import { Cancelling } from "../parts/cancelling.js";
import { Card } from "../parts/card.js";
import { Identifier } from "../parts/copy.js";
import { CopyCurl } from "../parts/copy_curl.js";
import { DataWarnings } from "../parts/data_warnings.js";
import { Dialog } from "../parts/dialog.js";
import { EventContent } from "../parts/event_content.js";
import { memberOf } from "../parts/json.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Recovery } from "../parts/recovery.js";
import { Time } from "../parts/time.js";
import { Timeline } from "../parts/timeline.js";
import { Verdict } from "../parts/verdict.js";
import { lastView } from "../parts/delivery_search.js";
import { Waiting } from "../parts/empty.js";
import { checkOf } from "../parts/wait.js";
import { mayHaveFailed } from "../parts/counts.js";
import { labelOf, useTypes } from "../parts/known.js";
import { ResendOutcome, attemptAfter, lastAttemptNumber, paceAfter } from "../parts/resent.js";
import { useAction, useLoad, usePolling } from "../parts/load.js";
import { addressOf } from "../words/address.js";
import { DELIVERY } from "../words/statuses.js";
import { targetOf } from "../words/requests.js";

const SOON = 30_000;

/**
 * The delivery, and its webhook if it still exists. `body` is the event as unparsed JSON, since parsing would change
 * it.
 */
async function read(id) {
  const text = await getText(`/webhook/delivery/${encodeURIComponent(id)}`);
  const delivery = { ...JSON.parse(text), body: memberOf(text, "event") };
  const webhook = await get(`/webhook/${encodeURIComponent(delivery.webhookIdentifier)}`).catch((refusal) => {
    if (refusal.status !== 404) throw refusal;
    return null;
  });
  // The service checks the paused webhook, not each of its deliveries.
  if (delivery.waitingFor === "breaker") delivery.nextAttemptDate = checkOf(delivery, webhook);
  return { delivery, webhook };
}

/**
 * How long the page polls for the effect of a recovery of failed deliveries, which begins within a minute, in
 * milliseconds.
 */
const WATCH_MS = 60_000;

/** The polling interval in milliseconds; `null` for a delivery that no longer changes. */
function pace(delivery, isWatched, resent) {
  if (isWatched) return 1000;
  const soon = delivery && resent && !attemptAfter(delivery, resent.number) && paceAfter(resent.time);
  if (soon) return soon;
  if (delivery?.heldBy || ["pause", "reader"].includes(delivery?.waitingFor)) return 5000;
  if (!delivery?.nextAttemptDate && delivery?.status !== "pending") return null;
  return new Date(delivery.nextAttemptDate ?? 0) - Date.now() < SOON ? 1000 : 5000;
}

export default function Delivery({ parts: [, id], query }) {
  const types = useTypes();
  const loaded = useLoad(() => read(id), [id]);
  const { delivery, webhook } = loaded.data ?? {};
  const [watchedUntil, watch] = useState(0);
  // The last resend from this page: its time, and the number of the last attempt before it.
  const [resent, expect] = useState(null);
  const every = pace(delivery, Date.now() < watchedUntil, resent);
  usePolling(loaded.reload, every ?? 1000, every !== null && !loaded.error);
  const above = html`<a href=${lastView()}>Deliveries</a> <span aria-hidden="true">/</span> <span>${id}</span>`;
  if (!delivery) {
    return html`
      <${Page} title="Delivery" above=${above}>
        ${loaded.error ? html`<${Problem} refusal=${loaded.error} retry=${loaded.reload} />`
          : html`<${Waiting} what="Loading delivery" />`}
      <//>`;
  }
  const recovered = () => watch(Date.now() + WATCH_MS);
  const shown = { delivery, webhook, types, above, query, recovered, resent, expect, reload: loaded.reload, error: loaded.error };
  return html`<${Shown} ...${shown} />`;
}

function Shown({ delivery, webhook, types, above, query, recovered, resent, expect, reload, error }) {
  const [open, show] = useState("");
  const close = () => show("");
  const resend = useAction(async () => {
    const after = await post(`/webhook/delivery/${encodeURIComponent(delivery.id)}/resend`);
    const time = Date.now();
    close();
    go(address(`/deliveries/${delivery.id}`), { replace: true });
    await reload();
    expect({ time, number: lastAttemptNumber(after), isPushed: Boolean(webhook.eventUrl) });
  });
  const chosen = Number(query.attempt) || delivery.attemptCount;
  const choose = (attempt) => go(address(`/deliveries/${delivery.id}`, { attempt }), { replace: true });
  const canRecover = useCanRecover(delivery, webhook);
  const title = labelOf(types, delivery.type);
  const { subject } = delivery;
  const isDelivered = delivery.status === "delivered";
  const asks = isDelivered || delivery.waitingFor === "order";
  const isOpen = ["pending", "retrying"].includes(delivery.status);
  const beside = !delivery.erasedDate && html`
    ${webhook && html`
      <${Action} kind=${isDelivered ? "" : "primary"} icon="resend" scope="integrations.write" busy=${resend.busy}
        onClick=${() => (asks ? show("again") : resend.run())}>Resend<//>
      ${canRecover && html`
        <${Action} icon="retrying" scope="integrations.write" onClick=${() => show("recovery")}>
          Recover failed deliveries…
        <//>`}`}
    ${isOpen && html`
      <${Action} icon="cancelled" scope="integrations.write" onClick=${() => show("cancel")}>Cancel…<//>`}
    ${targetOf(delivery, webhook) && html`<${CopyCurl} delivery=${delivery} webhook=${webhook} />`}`;
  return html`
    <${Page} title=${html`${title}${subject && html` · <bdi>${subject}</bdi>`}`}
      window=${[title, subject, delivery.status].filter(Boolean).join(", ")} above=${above} beside=${beside}
      lead=${html`<${Lead} delivery=${delivery} webhook=${webhook} />`}>
      <${Problem} refusal=${(open === "again" ? null : resend.refusal) ?? error} />
      <${ResendOutcome} resent=${resent} delivery=${delivery} />
      <${Verdict} delivery=${delivery} webhook=${webhook} />
      <${Card} title="Attempts">
        <${Timeline} delivery=${delivery} chosen=${chosen} choose=${choose} />
        ${delivery.attempts.length > 0
          ? html`<${Attempts} ...${{ delivery, chosen, choose }} />`
          : html`<p class="faint">No attempts yet.</p>`}
      <//>
      <${DataWarnings} warnings=${delivery.eventWarnings} />
      <${EventContent} delivery=${delivery} erased=${reload} />
      <${Card} title="Details"><${Details} delivery=${delivery} /><//>
      ${open === "again" && html`<${Again} delivery=${delivery} webhook=${webhook} resend=${resend} close=${close} />`}
      ${open === "cancel" && html`<${Cancelling} delivery=${delivery} close=${close} cancelled=${reload} />`}
      ${open === "recovery" && html`
        <${Recovery} webhook=${webhook} delivery=${delivery} close=${close} done=${recovered} />`}
    <//>`;
}

/** Whether deliveries of the webhook may be recovered. If that cannot be read, true. */
function useCanRecover({ status }, webhook) {
  const isFailed = ["failed", "cancelled", "retrying"].includes(status);
  const { data, error } = useLoad(() => isFailed || (webhook !== null && mayHaveFailed(webhook.id)),
    [webhook?.id, status], { keep: true });
  return isFailed || data || Boolean(error);
}

const Again = ({ delivery: { status, subject }, webhook, resend, close }) => html`
  <${Dialog} title=${status === "delivered" ? "Resend a delivered event?" : "Resend out of order?"} close=${close}>
    <p>${status !== "delivered"
      ? html`An earlier event about <bdi>${subject}</bdi> has not been delivered yet. Resending does not wait for it.`
      : webhook.eventUrl ? "The endpoint has received this event, and will receive it again with the same identifier."
      : "A program has confirmed this event, and will read it again with the same identifier."}</p>
    <${Problem} refusal=${resend.refusal} />
    <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
      <${Action} kind="primary" scope="integrations.write" busy=${resend.busy} onClick=${() => resend.run()}>Resend<//></div>
  <//>`;

function Lead({ delivery, webhook }) {
  const { status, type } = delivery;
  const { tone, icon, word } = DELIVERY[status];
  const target = webhook ? html`<a href="/panel/webhooks/${webhook.id}"><bdi>${webhook.name}</bdi></a>` : "a removed webhook";
  return html`<${Badge} tone=${tone} icon=${icon}>${word}<//> <${TestBadge} delivery=${delivery}
    /><code>${type}</code> to ${target}`;
}

const Details = ({ delivery: { id, event, subject, webhookIdentifier, url, createdDate, lastUpdate } }) => html`
  <dl class="facts">
    <div><dt>Delivery</dt><dd><${Identifier} id=${id} what="the delivery’s identifier" /></dd></div>
    <div>
      <dt>Event</dt>
      <dd>
        <${Identifier} id=${event.id} what="the event’s identifier" />${" "}
        <a href=${address("/deliveries", { event: event.id })}>All deliveries of this event</a>
      </dd>
    </div>
    ${subject && html`<div><dt>Subject</dt><dd><bdi>${subject}</bdi>${" "}
      <a href=${address("/deliveries", { subject })}>All deliveries with this subject</a></dd></div>`}
    <div><dt>Webhook</dt><dd><${Identifier} id=${webhookIdentifier} what="the webhook’s identifier" /></dd></div>
    <div><dt>Address when created</dt><dd>${url ? html`<code class="break">${url}</code>` : addressOf({})}</dd></div>
    <div><dt>Created</dt><dd><${Time} date=${createdDate} as="both" /></dd></div>
    <div><dt>Last changed</dt><dd><${Time} date=${lastUpdate} as="both" /></dd></div>
  </dl>`;
