// The list of webhooks, each with its state.
import { html } from "../parts/html.js";
import { Badge } from "../parts/badge.js";
import { Empty, Waiting } from "../parts/empty.js";
import { Guide } from "../parts/guide.js";
import { LinkButton } from "../parts/action.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Overview, Success, useStats } from "../parts/success.js";
import { Trouble } from "../parts/webhook_trouble.js";
import { counted } from "../parts/words.js";
import { webhooks } from "../parts/known.js";
import { useLoad, usePolling } from "../parts/load.js";
import { addressOf } from "../words/address.js";
import { healthOf } from "../words/health.js";

export default function Webhooks() {
  const list = useLoad(webhooks, []);
  usePolling(list.reload, 10_000, Boolean(list.data));
  const stats = useStats(list.data);
  const add = html`<${LinkButton} to="/panel/webhooks/new" kind="primary" icon="plus">New webhook<//>`;
  return html`
    <${Page} title="Webhooks" lead=${html`Endpoints that receive events. <${Guide}>Guide for receivers<//>`} beside=${list.data?.length > 0 && add}>
      <${Problem} refusal=${list.error} retry=${list.reload} />
      ${!list.data && !list.error && html`<${Waiting} what="Loading webhooks" />`}
      ${list.data?.length === 0 && html`
        <${Empty} icon="webhooks" title="No webhooks yet">
          <p>A webhook sends events of the types that you select to your server. Create one, then send it a test
            event.</p>
          <p>${add}</p>
        <//>`}
      ${list.data?.length > 0 && html`<${Overview} webhooks=${list.data} stats=${stats} /><ul class="cards">
        ${list.data.map((webhook) => html`<${Card} key=${webhook.id} webhook=${webhook} day=${stats[webhook.id]?.last24Hours} />`)}</ul>`}
    <//>`;
}

function Card({ webhook, day }) {
  const { tone, icon, word } = healthOf(webhook, day);
  return html`
    <li class="card">
      <div class="card-head"><h2 dir="auto"><a class="row-link" href="/panel/webhooks/${webhook.id}">
        ${webhook.name}</a></h2>
        <${Badge} tone=${tone} icon=${icon}>${word}<//></div>
      <p class="cut"><code>${addressOf(webhook)}</code></p>
      <p class="faint">${webhook.eventList.length
        ? `${counted(webhook.eventList.length, "event type or group", "event types and groups")}` : "All event types"}
        ${webhook.eventFilter && ", filtered by data"}</p>
      ${webhook.enabled && html`<${Success} day=${day} />`}
      <${Trouble} webhook=${webhook} />
    </li>`;
}
