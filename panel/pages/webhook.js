// A webhook's page: its endpoint's health, and what can be done with it.
import { html, useState } from "../parts/html.js";
import { get, patch, post } from "../api.js";
import { address, go } from "../address.js";
import { Action, LinkButton } from "../parts/action.js";
import { Badge } from "../parts/badge.js";
import { Card } from "../parts/card.js";
import { Chart } from "../parts/chart.js";
import { DeliveryTable } from "../parts/delivery_table.js";
import { Guide } from "../parts/guide.js";
import { Health, hasTrouble } from "../parts/webhook_health.js";
import { Time } from "../parts/time.js";
import { Identifier } from "../parts/copy.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Recovery } from "../parts/recovery.js";
import { Replay } from "../parts/replay.js";
import { Removal } from "../parts/webhook_removal.js";
import { PublicKeys } from "../parts/webhook_keys.js";
import { Ending, Rotation } from "../parts/webhook_rotation.js";
import { Disabling, Pausing, Stop } from "../parts/webhook_stop.js";
import { Waiting } from "../parts/empty.js";
import { WaitingDeliveries } from "../parts/webhook_waiting.js";
import { focusTitle } from "../parts/focus.js";
import { webhookOf } from "../parts/event_filter.js";
import { labelOf, useTypes } from "../parts/known.js";
import { Text } from "../parts/json.js";
import { latestOf, mayHaveFailed } from "../parts/counts.js";
import { say } from "../parts/notices.js";
import { useAction, useLoad, usePolling } from "../parts/load.js";
import { addressOf, payloadInWords } from "../words/address.js";
import { healthOf } from "../words/health.js";
import { orderInWords } from "../words/orders.js";
import { retriesInWords } from "../words/retries.js";

async function read(id) {
  const path = `/webhook/${encodeURIComponent(id)}`;
  const [webhook, stats, latest, canRecover] =
    await Promise.all([webhookOf(id), get(`${path}/stats`), latestOf(id, 5), mayHaveFailed(id)]);
  return { webhook, stats, latest, canRecover };
}

export default function Webhook({ parts: [, id] }) {
  const loaded = useLoad(() => read(id), [id]);
  usePolling(loaded.reload, 5000, Boolean(loaded.data) && !loaded.error);
  const above = html`<a href="/panel/webhooks">Webhooks</a>`;
  if (!loaded.data) {
    return html`
      <${Page} title="Webhook" above=${above}>
        ${loaded.error ? html`<${Problem} refusal=${loaded.error} retry=${loaded.reload} />`
          : html`<${Waiting} what="Loading webhook" />`}
      <//>`;
  }
  return html`<${Shown} ...${loaded.data} above=${above} error=${loaded.error} reload=${loaded.reload} />`;
}

function Shown({ webhook, stats, latest, canRecover, above, error, reload }) {
  const path = `/webhook/${encodeURIComponent(webhook.id)}`;
  const types = useTypes();
  const [open, show] = useState("");
  const close = () => show("");
  const test = useAction(async () => {
    const { deliveryIdentifier } = await post(`${path}/test`);
    go(`/panel/deliveries/${deliveryIdentifier}`);
  });
  const enable = useAction(async (enabled) => {
    await patch(path, { enabled });
    say(enabled ? "The webhook is enabled. Events are sent to it again." : "The webhook is disabled. It receives nothing.");
    close();
    await reload();
    focusTitle();
  });
  const pause = useAction(async (length) => {
    await post(`${path}/pause`, length);
    say("The webhook is paused. Its deliveries are on hold.");
    close();
    await reload();
    focusTitle();
  });
  const resume = useAction(async () => {
    await post(`${path}/resume`);
    say("The pause has ended. Waiting deliveries are being sent.");
    await reload();
    focusTitle();
  });
  const { tone, icon, word } = healthOf(webhook, stats.last24Hours);
  // Nothing is sent to a disabled webhook, not even a test event.
  const beside = html`
    ${webhook.enabled
      ? html`<${Action} key="test" kind="primary" icon="resend" scope="integrations.write" busy=${test.busy}
          onClick=${() => test.run()}>Send a test event<//>`
      : html`<${Action} key="enable" kind="primary" scope="integrations.write" busy=${enable.busy}
          onClick=${() => enable.run(true)}>Enable<//>`}
    <${LinkButton} to="/panel/webhooks/${webhook.id}/edit">Edit<//>`;
  return html`
    <${Page} title=${webhook.name} above=${above} beside=${beside}
      lead=${html`<${Badge} tone=${tone} icon=${icon}>${word}<//> <code class="break">${addressOf(webhook)}</code>`}>
      <${Problem} refusal=${test.refusal ?? enable.refusal ?? resume.refusal ?? error} />
      <${Health} webhook=${webhook} resume=${resume} recover=${() => show("recovery")} />
      <${WaitingDeliveries} webhook=${webhook} />
      <${Card} title="Performance"><${Chart} stats=${stats} /><//>
      <${Latest} ...${{ webhook, latest, stats, canRecover, types }} recover=${() => show("recovery")} />
      <${Card} title="Events"><${Wanted} webhook=${webhook} types=${types} />
        ${webhook.enabled && html`<div class="actions">
          <${Action} scope="integrations.write" onClick=${() => show("replay")}>Replay events…<//></div>`}
      <//>
      <${Card} title="Signing secret">
        <${Signing} until=${webhook.previousSecretExpiresDate} />
        <${PublicKeys} keys=${webhook.publicKeys} />
        <div class="actions">
          <${Action} icon="key" scope="integrations.write" onClick=${() => show("rotation")}>Rotate secret<//>
          ${webhook.previousSecretExpiresDate && html`
            <${Action} scope="integrations.remove" onClick=${() => show("ending")}>Remove old secret…<//>`}
        </div>
      <//>
      <${Card} title="Details"><${Details} webhook=${webhook} /><//>
      <${Stop} webhook=${webhook} pause=${() => show("pausing")} disable=${() => show("disabling")} remove=${() => show("removal")} />
      ${open === "rotation" && html`<${Rotation} webhook=${webhook} close=${() => { close(); reload(); }} />`}
      ${open === "pausing" && html`<${Pausing} webhook=${webhook} pause=${pause} close=${close} />`}
      ${open === "disabling" && html`<${Disabling} webhook=${webhook} enable=${enable} close=${close} />`}
      ${open === "ending" && html`<${Ending} webhook=${webhook} close=${close} done=${reload} />`}
      ${open === "removal" && html`<${Removal} webhook=${webhook} close=${close} />`}
      ${open === "replay" && html`<${Replay} webhook=${webhook} close=${close} done=${reload} />`}
      ${open === "recovery" && html`<${Recovery} webhook=${webhook} close=${close} done=${reload} />`}
    <//>`;
}

/** Why no delivery is shown. A search that did not reach the end says so. */
function nothing({ exact }, { enabled }, { last7Days }) {
  if (!exact) return "No recent deliveries were found. “All deliveries” searches further back.";
  if (last7Days.attempts) return "The deliveries are no longer stored.";
  return enabled ? "No deliveries yet. Send a test event to try the endpoint." : "No deliveries yet.";
}

function Latest({ webhook, latest, stats, canRecover, types, recover }) {
  const { items } = latest;
  const those = (status) => address("/deliveries", { webhook: webhook.id, status });
  return html`
    <${Card} title="Latest deliveries" plain>
      ${items.length > 0
        ? html`<${DeliveryTable} items=${items} types=${types} webhooks=${[webhook]} />`
        : html`<p class="faint">${nothing(latest, webhook, stats)}</p>`}
      <p>
        <a href=${those()}>All deliveries</a>
        ${" · "}<a href=${those("failed")}>Failed</a>
        ${" · "}<a href=${those("pending,retrying")}>Open</a>
      </p>
      ${webhook.enabled && !hasTrouble(webhook) && canRecover && html`<div class="actions">
        <${Action} icon="retrying" scope="integrations.write" onClick=${recover}>Recover failed deliveries…<//></div>`}
    <//>`;
}

const Wanted = ({ webhook: { eventList, eventFilter }, types }) => html`
  ${eventList.length === 0
    ? html`<p>All types, including types added later.</p>`
    : html`<ul class="tags">${eventList.map((key) => html`<li title=${key}>${labelOf(types, key)}</li>`)}</ul>`}
  ${eventFilter && html`<p>Only events whose data matches this filter:</p>
    <${Text} text=${eventFilter} what="The filter of this webhook" />`}`;

const Signing = ({ until }) => html`
  <p>${until
    ? html`Requests are signed with the new secret and, until <${Time} date=${until} as="both" />, the old one.`
    : "Requests are signed with one secret. Rotate it if it may have leaked, or as your policy requires."}${" "}
    <${Guide}>How an endpoint verifies requests<//></p>`;

const Details = ({ webhook }) => {
  const { id, delivery, headers, createdDate, lastUpdate, maxAttemptsPerSecond, metadata, order, payload, retries, timeoutSeconds,
    version } = webhook;
  return html`
  <dl class="facts">
    <div><dt>Identifier</dt><dd><${Identifier} id=${id} what="the webhook’s identifier" /></dd></div>
    ${delivery === "push" && html`
      <div><dt>Custom headers</dt><dd>${Object.keys(headers).join(", ") || "None"}</dd></div>
      <div><dt>Attempts per second</dt><dd>${maxAttemptsPerSecond ? `At most ${maxAttemptsPerSecond}`
        : "No limit"}</dd></div>
      <div><dt>Timeout</dt><dd>${timeoutSeconds} s</dd></div>
      <div><dt>Retries</dt><dd>${retriesInWords(retries)}</dd></div>`}
    <div><dt>Order</dt><dd>${orderInWords(order)}</dd></div>
    <div><dt>Body</dt><dd>${payloadInWords(payload)}</dd></div>
    ${Object.entries(metadata).map(([name, value]) => html`<div key=${name}><dt class="outside">${name}</dt><dd
      class="outside">${value}</dd></div>`)}
    <div><dt>Created</dt><dd><${Time} date=${createdDate} as="both" /></dd></div>
    <div><dt>Last changed</dt><dd><${Time} date=${lastUpdate} as="both" />, version ${version}</dd></div>
  </dl>`;
};
