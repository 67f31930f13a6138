// How a webhook is stopped: for a while, or for good.
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
        ? "Disabled, it is sent nothing, and what is published meanwhile makes no delivery to it. It can be enabled again."
        : "It is disabled. Enabled, it is sent what is published from then on."}</p>
      ${enabled
        ? html`<${Action} key="disable" scope="integrations.write" onClick=${disable}>Disable …<//>`
        : html`<${Action} key="enable" scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(true)}>
          Enable<//>`}
    </div>
    <div class="choice">
      <p>Removed, it is gone for good. Its deliveries can be read for as long as they are kept, and not be sent again.</p>
      <${Action} kind="danger" scope="integrations.remove" onClick=${remove}>Remove …<//>
    </div>
  <//>`;

/** What is still open to it is said before it is disabled. */
export function Disabling({ webhook, enable, close }) {
  const open = useLoad(() => count(webhook.id, "pending,retrying"), [webhook.id]);
  return html`
    <${Dialog} title="Disable ${webhook.name}?" close=${close}>
      ${open.loading && html`<${Waiting} what="What is open is counted" lines="1" />`}
      ${open.data && html`<p role="status">
        ${open.data.found === 0 ? "Nothing is on its way to it." : html`<strong>${countWords(open.data)}
        </strong> to it ${open.data.found === 1 ? "is" : "are"} still being tried, and will be cancelled. What was cancelled
        can be recovered once it is enabled again.`}</p>`}
      <p>What is published while it is disabled is not delivered to it later, either.</p>
      <${Problem} refusal=${open.error ?? enable.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(false)}>
          Disable
        <//></div>
    <//>`;
}
