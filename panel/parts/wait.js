// Why an open delivery is waiting, and until when, in a few words for a row in the list.
import { html } from "./html.js";
import { Countdown, Time } from "./time.js";

/** Nothing for a delivery that does not wait. The link to the previous delivery lies above the link of the row. */
export function Wait({ delivery: { heldBy, nextAttemptDate, waitingFor }, webhook }) {
  if (webhook?.enabled === false) return null;
  if (waitingFor === "order") {
    return html`<span>after ${heldBy ? html`<a class="above-row" href="/panel/deliveries/${heldBy}">the previous one</a>`
      : "the previous one"}</span>`;
  }
  if (waitingFor === "reader") return html`<span>waiting for a reader</span>`;
  if (waitingFor === "limit") return html`<span>after other deliveries</span>`;
  if (waitingFor === "pause") return html`<span>paused until ${until(webhook)}</span>`;
  if (!nextAttemptDate) return null;
  if (waitingFor === "breaker") {
    return html`<span>paused, check <${Time} date=${checkOf({ nextAttemptDate }, webhook)} as="clock" /></span>`;
  }
  return html`<${Countdown} before=${waitingFor === "rate" ? "rate limit, in " : "next in "} brief
    over=${webhook?.deliveryState === "paused" ? "paused" : "due now"} until=${nextAttemptDate} />`;
}

/** When the service checks a delivery's paused webhook. A resent delivery follows sooner. */
export const checkOf = ({ nextAttemptDate }, webhook) =>
  (webhook?.pausedBy === "service" && webhook.pausedUntil < nextAttemptDate ? webhook.pausedUntil : nextAttemptDate);

const until = (webhook) => (webhook?.pausedUntil ? html`<${Time} date=${webhook.pausedUntil} as="clock" />` : "it is resumed");
