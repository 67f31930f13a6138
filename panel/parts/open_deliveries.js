// A webhook's number of open deliveries, and what happens to them when it is disabled or removed.
import { html } from "./html.js";
import { Problem } from "./problem.js";
import { Waiting } from "./empty.js";
import { count, countSentence, isNone } from "./counts.js";
import { useLoad } from "./load.js";

/** `fate` is a sentence about these deliveries. */
export function OpenDeliveries({ webhook, fate }) {
  const open = useLoad(() => count({ webhookIdentifier: webhook.id, status: "pending,retrying" }), [webhook.id]);
  return html`
    <div role="status">
      ${open.loading && html`<${Waiting} what="Counting open deliveries" lines="1" />`}
      ${open.data && html`<p>${sentence(open.data, fate)}</p>`}
    </div>
    <${Problem} refusal=${open.error} retry=${open.reload} />`;
}

function sentence(open, fate) {
  if (isNone(open)) return "The webhook has no open deliveries.";
  if (!open.found) return `The webhook may have open deliveries: not all could be checked. ${fate}`;
  const one = open.exact && open.found === 1;
  return html`<strong>${countSentence(open)}</strong> ${one ? "is" : "are"} still open. ${fate}`;
}
