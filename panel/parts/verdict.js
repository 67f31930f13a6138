// The status of a delivery in words, with cause and remedy.
import { html } from "./html.js";
import { Icon } from "./icon.js";
import { Countdown, Time, isOver, span } from "./time.js";
import { Why } from "./why.js";
import { displayed } from "./json.js";
import { counted } from "./words.js";
import { causeNamed, causeOf } from "../words/causes.js";
import { result } from "../words/results.js";
import { DELIVERY, waits } from "../words/statuses.js";

const attempts = (count) => counted(count, "attempt", "attempts");

function headline({ status, attemptCount, attempts: made, cancelReason, heldBy, waitingFor }) {
  const last = made.at(-1);
  if (status === "delivered") return `Delivered on attempt ${attemptCount}, in ${span(last.durationMs / 1000)}`;
  if (status === "failed") return `Not delivered after ${attempts(attemptCount)}: ${result(last)}`;
  if (cancelReason === "erased") return "Cancelled: the content of the event was erased";
  if (cancelReason === "owner") {
    return `Cancelled on request, ${attemptCount ? `after ${attempts(attemptCount)}` : "before the first attempt"}`;
  }
  if (cancelReason === "webhook-removed") return "Cancelled: the webhook was removed before the delivery";
  if (cancelReason === "expired") return "Cancelled: it waited longer than deliveries are kept";
  if (cancelReason) return "Cancelled: the webhook was disabled before the delivery";
  if (status === "retrying") return `Not delivered yet, after ${attempts(attemptCount)}: ${result(last)}`;
  if (waitingFor === "pause") return "Waiting for the end of the webhook’s pause";
  if (heldBy) return "Waiting for the previous delivery about the same subject";
  if (waitingFor === "reader") return "Waiting for a program to read the webhook’s feed";
  return attemptCount ? "Waiting to be resent" : "Waiting for the first attempt";
}

/** The cause of the status: of the last attempt, or of the whole webhook. */
function causeFor({ status, waitingFor, attempts: made, erasedDate, cancelReason }, webhook) {
  if (status === "delivered" || cancelReason === "owner") return null;
  if (status === "cancelled") return webhook && !webhook.enabled && !erasedDate ? causeNamed("disabled") : null;
  if (waitingFor === "breaker") return causeNamed("paused");
  if (waitingFor === "pause") return causeNamed("paused-by-owner");
  if (waitingFor === "order") return causeNamed("held");
  return status === "pending" || !made.length ? null : causeOf(made.at(-1));
}

const QUOTED = 200;

/** The beginning of a response; the attempt shows the whole. */
function beginning(body) {
  const text = displayed(body ?? "");
  return text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text;
}

const ENABLED_AGAIN = "The webhook is enabled again. Resend this delivery, or retry all failed deliveries.";
const ON_REQUEST = "You can resend this delivery. “Retry failed deliveries” skips it.";
const EXPIRED = "It is removed soon. If the event is still needed, publish it again.";
const CANCELLED = { owner: ON_REQUEST, expired: EXPIRED };
const REMOVED = "The webhook was removed, so this delivery cannot be resent.";

/** The tolerance, in milliseconds, within which a wait counts as the wait that the endpoint asked for. */
const TOLERANCE_MS = 2000;

/** The wait that the endpoint asked for, in seconds, if it determines the next attempt; otherwise `null`. */
function askedFor({ nextAttemptDate, attempts: made, waitingFor }) {
  const last = made.at(-1);
  if (waitingFor !== "schedule" || last?.retryAfterSeconds === undefined) return null;
  const end = new Date(last.attemptDate).getTime() + last.durationMs + last.retryAfterSeconds * 1000;
  return Math.abs(new Date(nextAttemptDate) - end) <= TOLERANCE_MS ? last.retryAfterSeconds : null;
}

function Next({ delivery }) {
  const asked = askedFor(delivery);
  const reason = asked === null ? waits(delivery)
    : html`because the endpoint asked to wait ${span(asked)} (<code>Retry-After</code>)`;
  return html`<strong><${Countdown} before="in " until=${delivery.nextAttemptDate} /></strong>${
    !isOver(delivery.nextAttemptDate) && html`, <${Time} date=${delivery.nextAttemptDate} />`}${reason && html`, ${reason}`}.`;
}

export function Verdict({ delivery, webhook }) {
  const { tone, icon } = DELIVERY[delivery.status];
  const cause = causeFor(delivery, webhook);
  const answer = beginning(delivery.attempts.at(-1)?.responseBody);
  return html`
    <section class="verdict ${tone}" aria-label="Status">
      <span class="medal"><${Icon} name=${icon} /></span>
      <div>
        <h2>${headline(delivery)}</h2>
        ${delivery.nextAttemptDate && html`<p>${"Next attempt: "}<${Next} delivery=${delivery} /></p>`}
        ${delivery.heldBy && html`<p>It is sent when <a href="/panel/deliveries/${delivery.heldBy}">the previous
          delivery</a> is delivered, has failed permanently or is cancelled.</p>`}
        ${cause && html`<${Why} cause=${cause} />`}
        ${cause && answer && html`<p>Response: <span class="outside" dir="auto">${answer}</span></p>`}
        ${delivery.status === "cancelled" && !cause && !delivery.erasedDate && html`<p>${
          webhook ? CANCELLED[delivery.cancelReason] ?? ENABLED_AGAIN : REMOVED}</p>`}
      </div>
    </section>`;
}
