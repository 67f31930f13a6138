// The ways to stop a webhook: for a while, or permanently.
import { html, useState } from "./html.js";
import { Action } from "./action.js";
import { Card } from "./card.js";
import { Dialog } from "./dialog.js";
import { SelectField } from "./field.js";
import { OpenDeliveries } from "./open_deliveries.js";
import { Problem } from "./problem.js";

export const Stop = ({ webhook: { delivery, enabled, pausedBy }, pause, disable, remove }) => html`
  <${Card} title=${enabled ? "Pause, disable or remove" : "Remove"}>
    ${enabled && delivery === "push" && pausedBy !== "owner" && html`<div class="choice">
      <p>While paused, the webhook’s deliveries are on hold until the pause ends.</p>
      <${Action} scope="integrations.write" onClick=${pause}>Pause…<//>
    </div>`}
    ${enabled && html`<div class="choice">
      <p>While disabled, the webhook receives nothing. After you enable it again, you can replay the events published in
        the meantime.</p>
      <${Action} scope="integrations.write" onClick=${disable}>Disable…<//>
    </div>`}
    <div class="choice">
      <p>A removed webhook cannot be restored. You can read its deliveries while they are kept, but not resend them.</p>
      <${Action} kind="danger" scope="integrations.remove" onClick=${remove}>Remove…<//>
    </div>
  <//>`;

const HOUR_MS = 3_600_000;
const LENGTHS = [["", "Until someone resumes it"], ["1", "One hour"], ["8", "Eight hours"], ["24", "One day"]];

/** The dialog that pauses a webhook. */
export function Pausing({ webhook, pause, close }) {
  const [hours, choose] = useState("");
  const until = () => (hours ? { until: new Date(Date.now() + hours * HOUR_MS).toISOString() } : {});
  return html`
    <${Dialog} title=${html`Pause <bdi>${webhook.name}</bdi>?`} close=${close}>
      <p>Its deliveries are on hold until the pause ends. Test events and resends are still sent at once.</p>
      <${SelectField} label="Duration" value=${hours} change=${choose} options=${LENGTHS} />
      <${Problem} refusal=${pause.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="integrations.write" busy=${pause.busy} onClick=${() => pause.run(until())}>
          Pause webhook
        <//></div>
    <//>`;
}

const CANCELLED = "An open delivery is cancelled if its next attempt is due while the webhook is disabled. " +
  "You can recover cancelled deliveries after you enable the webhook again.";

/** The dialog that disables a webhook, with the number of its open deliveries. */
export const Disabling = ({ webhook, enable, close }) => html`
  <${Dialog} title=${html`Disable <bdi>${webhook.name}</bdi>?`} close=${close}>
    <${OpenDeliveries} webhook=${webhook} fate=${CANCELLED} />
    <p>Events published while it is disabled are not delivered to it, unless you replay them later.</p>
    <${Problem} refusal=${enable.refusal} />
    <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
      <${Action} kind="danger" scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(false)}>
        Disable webhook
      <//></div>
  <//>`;
