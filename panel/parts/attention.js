// What needs attention, on the first page: the webhooks whose deliveries do not arrive, each with a link to them.
import { html } from "./html.js";
import { address } from "../address.js";
import { Badge } from "./badge.js";
import { Time } from "./time.js";
import { needsAttention } from "./known.js";
import { healthOf } from "../words/health.js";

/** The number of webhooks that are named; the list of webhooks has the others. */
const MOST = 5;

/** When it began: that of its failures, if the service paused it for them. */
const since = ({ disabledDate, pausedSince, failingSince }) => disabledDate ?? pausedSince ?? failingSince;

/** The calm line, in the line of the title, so that the list keeps its height. */
export const Calm = ({ webhooks }) => (webhooks.length > 0 && !webhooks.some(needsAttention)
  ? html`<span class="faint">No webhook needs attention</span>` : null);

export function Attention({ webhooks }) {
  const troubled = webhooks.filter(needsAttention);
  if (!troubled.length) return null;
  return html`
    <section class="attention" aria-label="What needs attention">
      <ul>${troubled.slice(0, MOST).map((webhook) => html`<${Troubled} key=${webhook.id} webhook=${webhook} />`)}</ul>
      ${troubled.length > MOST && html`<p><a href="/panel/webhooks">${troubled.length - MOST} more</a></p>`}
    </section>`;
}

function Troubled({ webhook }) {
  const { tone, icon, word } = healthOf(webhook);
  const from = since(webhook);
  return html`
    <li><${Badge} tone=${tone} icon=${icon}>${word}<//> <a href="/panel/webhooks/${webhook.id}" dir="auto">${webhook.name}</a>
      ${from && html`<span class="faint">since <${Time} date=${from} seconds=${false} /></span>`}
      <a href=${address("/deliveries", { webhook: webhook.id })}>View deliveries</a></li>`;
}
