// A webhook's problem, with cause and remedy; empty for a healthy webhook.
import { html } from "./html.js";
import { Action } from "./action.js";
import { Icon } from "./icon.js";
import { Trouble } from "./webhook_trouble.js";
import { Why } from "./why.js";
import { causeNamed, causeOf } from "../words/causes.js";
import { healthOf } from "../words/health.js";

const HEADLINES = {
  active: "The last attempts failed",
  failing: "The endpoint is failing",
  paused: "Paused: the endpoint does not respond",
  pausedByOwner: "Paused: deliveries on hold",
  disabled: "Disabled",
};

/** Whether the page shows the problem, and with it the button that recovers failed deliveries. */
export const hasTrouble = ({ deliveryState, failuresInRow }) => deliveryState !== "active" || failuresInRow > 0;

export function Health({ webhook, resume, recover }) {
  const { deliveryState, enabled, lastHttpStatus, lastErrorCode, pausedBy } = webhook;
  const byOwner = pausedBy === "owner";
  if (!hasTrouble(webhook)) return null;
  const failure = { httpStatus: lastHttpStatus, errorCode: lastErrorCode };
  const cause = byOwner ? causeNamed("paused-by-owner")
    : deliveryState === "disabled" ? causeNamed("disabled") : causeOf(failure);
  const { tone, icon } = healthOf(webhook);
  return html`
    <section class="verdict ${tone}" aria-label="Trouble">
      <span class="medal"><${Icon} name=${icon} /></span>
      <div>
        <h2>${HEADLINES[byOwner ? "pausedByOwner" : deliveryState]}</h2>
        <${Trouble} webhook=${webhook} />
        ${cause && html`<${Why} cause=${cause} />`}
        ${enabled && html`<div class="form-actions">
          ${deliveryState === "paused" && html`
            <${Action} scope="integrations.write" busy=${resume.busy} onClick=${() => resume.run()}>
              Resume webhook
            <//>`}
          ${!byOwner && html`
            <${Action} icon="retrying" scope="integrations.write" onClick=${recover}>Recover failed deliveries…<//>`}
        </div>`}
      </div>
    </section>`;
}
