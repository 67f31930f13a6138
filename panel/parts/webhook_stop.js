// The ways to stop a webhook: temporarily, or permanently.
import { html } from "./html.js";
import { Action } from "./action.js";
import { Card } from "./card.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { Waiting } from "./empty.js";
import { count, countWords } from "./recovery.js";
import { useLoad } from "./load.js";

export const Stop = ({ webhook: { enabled }, enable, disable, remove }) => html`
  <${Card} title="Stop">
    <div class="choice">
      <p>${enabled
        ? "A disabled webhook receives no events. Events that are published meanwhile make no delivery to it. It can be enabled again."
        : "It is disabled. Once enabled, it receives the events that are published from then on."}</p>
      ${enabled
        ? html`<${Action} key="disable" scope="integrations.write" onClick=${disable}>Disable …<//>`
        : html`<${Action} key="enable" scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(true)}>
          Enable<//>`}
    </div>
    <div class="choice">
      <p>Removal is permanent. Its deliveries can be read for as long as they are kept, but not sent again.</p>
      <${Action} kind="danger" scope="integrations.remove" onClick=${remove}>Remove …<//>
    </div>
  <//>`;

/** The dialog that disables a webhook, with the number of its open deliveries. */
export function Disabling({ webhook, enable, close }) {
  const open = useLoad(() => count(webhook.id, "pending,retrying"), [webhook.id]);
  return html`
    <${Dialog} title="Disable ${webhook.name}?" close=${close}>
      ${open.loading && html`<${Waiting} what="Counting the open deliveries" lines="1" />`}
      ${open.data && html`<p role="status">
        ${open.data.found === 0 ? "It has no open deliveries." : html`<strong>${countWords(open.data)}
        </strong> to it ${open.data.found === 1 ? "is" : "are"} still open, and will be cancelled. Cancelled deliveries
        can be recovered after it is enabled again.`}</p>`}
      <p>Events that are published while it is disabled are not delivered to it, neither then nor later.</p>
      <${Problem} refusal=${open.error ?? enable.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(false)}>
          Disable
        <//></div>
    <//>`;
}
