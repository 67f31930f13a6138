// A delivery's status in words, with cause and remedy.
import { html } from "./html.js";
import { Icon } from "./icon.js";
import { Countdown, Time, isOver, span } from "./time.js";
import { Why } from "./why.js";
import { displayed } from "./json.js";
import { counted } from "./words.js";
import { causeNamed, causeOf } from "../words/causes.js";
import { result } from "../words/results.js";
import { DELIVERY } from "../words/statuses.js";
import { HEADLINES, waits } from "../words/waiting.js";

const attempts = (count) => counted(count, "attempt", "attempts");

function headline({ status, attemptCount, attempts: made, cancelReason, heldBy, waitingFor }) {
  const last = made.at(-1);
  if (status === "delivered") return `Delivered on attempt ${attemptCount}, in ${span(last.durationMs / 1000)}`;
  if (status === "failed") return `Not delivered after ${attempts(attemptCount)}: ${result(last)}`;
  if (cancelReason === "erased") return "Cancelled: the event’s content was erased";
  if (cancelReason === "owner") {
    return `Cancelled on request, ${attemptCount ? `after ${attempts(attemptCount)}` : "before the first attempt"}`;
  }
  if (cancelReason === "webhook-removed") return "Cancelled: the webhook was removed before delivery";
  if (cancelReason === "expired") return "Cancelled: it waited longer than deliveries are kept";
  if (cancelReason) return "Cancelled: the webhook was disabled before delivery";
  if (status === "retrying") return `Not delivered yet, after ${attempts(attemptCount)}: ${result(last)}`;
  return HEADLINES[heldBy ? "order" : waitingFor] ?? (attemptCount ? "Waiting to be resent" : "Waiting for the first attempt");
}

/** The cause of the status: of the last attempt, or of the whole webhook. */
function causeFor({ status, waitingFor, attempts: made, createdDate, erasedDate, cancelReason }, webhook) {
  if (status === "delivered" || cancelReason === "owner") return null;
  if (status === "cancelled") return webhook && !webhook.enabled && !erasedDate ? causeNamed("disabled") : null;
  if (waitingFor === "breaker") return causeNamed("paused");
  if (waitingFor === "pause") return causeNamed("paused-by-owner");
  if (waitingFor === "order") return causeNamed("held");
  if (waitingFor === "rate") return causeNamed("rate-limited");
  if (waitingFor === "reader") return isUnread(createdDate, webhook) ? causeNamed("unread") : null;
  return status === "pending" || !made.length ? null : causeOf(made.at(-1));
}

/**
 * Whether no program has read the feed since this time. The time of the last reading is only exact to a few minutes.
 */
const isUnread = (date, webhook) => webhook && !(webhook.lastReadDate >= date);

const QUOTED = 200;

/** The beginning of a response; the attempt shows all of it. */
function beginning(body) {
  const text = displayed(body ?? "");
  return text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text;
}

const ENABLED_AGAIN = "The webhook is enabled again. Resend this delivery, or recover all failed deliveries.";
const ON_REQUEST = "You can resend this delivery. “Recover failed deliveries” skips it.";
const EXPIRED = "It will be removed soon. If the event is still needed, publish it again.";
const CANCELLED = { owner: ON_REQUEST, expired: EXPIRED };
const DISABLED = "The webhook is disabled now. Enable it before you resend this delivery.";
const REMOVED = "The webhook was removed, so this delivery cannot be resent.";

/** The tolerance, in milliseconds, within which a wait counts as the one that the endpoint asked for. */
const TOLERANCE_MS = 2000;

/** The wait that the endpoint asked for, in seconds, if it determines the next attempt; otherwise `null`. */
function askedFor({ nextAttemptDate, attempts: made, waitingFor }) {
  const last = made.at(-1);
  if (waitingFor !== "schedule" || last?.retryAfterSeconds === undefined) return null;
  const end = new Date(last.attemptDate).getTime() + last.durationMs + last.retryAfterSeconds * 1000;
  return Math.abs(new Date(nextAttemptDate) - end) <= TOLERANCE_MS ? last.retryAfterSeconds : null;
}

/** The time of the next attempt or, if the service paused the webhook, of the check that precedes it. */
function Next({ delivery, webhook }) {
  const { nextAttemptDate, waitingFor } = delivery;
  const isCheck = waitingFor === "breaker";
  const asked = askedFor(delivery);
  const reason = asked === null ? waits(delivery, webhook)
    : html`because the endpoint asked to wait ${span(asked)} (<code>Retry-After</code>)`;
  return html`${isCheck ? "The paused webhook is checked again " : "Next attempt: "}<strong><${Countdown} before="in "
    until=${nextAttemptDate} /></strong>${!isOver(nextAttemptDate) && html`, <${Time} date=${nextAttemptDate} />`}${
    reason && html`, ${reason}`}.${isCheck && " The delivery is sent when the endpoint responds."}`;
}

/** What must happen before the next attempt, if no time is set for it. */
function Condition({ delivery: { createdDate, heldBy, subject, waitingFor }, webhook }) {
  if (heldBy) {
    return html`<p>It is sent when <a href="/panel/deliveries/${heldBy}">the previous delivery${subject && html` for${" "}
      <bdi>${subject}</bdi>`}</a> is delivered, is cancelled or fails permanently.</p>`;
  }
  if (waitingFor === "pause") {
    return html`<p>It is sent when the pause ends: ${webhook?.pausedUntil
      ? html`<strong><${Time} date=${webhook.pausedUntil} as="both" /></strong>` : "when someone resumes the webhook"}.</p>`;
  }
  if (waitingFor !== "reader") return null;
  return html`<p>It is in the feed, unread since <strong><${Time} date=${createdDate} as="both" /></strong>. The feed was${" "}
    ${webhook?.lastReadDate ? html`last read <${Time} date=${webhook.lastReadDate} as="distance" />` : "never read"}.</p>`;
}

export function Verdict({ delivery, webhook }) {
  const { tone, icon } = DELIVERY[delivery.status];
  const cause = causeFor(delivery, webhook);
  const last = delivery.attempts.at(-1);
  const answer = beginning(last?.responseBody);
  // The endpoint's response, or why there is none, precedes its usual meaning.
  const own = cause && delivery.status !== "pending" && (answer || last?.errorDetail);
  return html`
    <section class="verdict ${tone}" aria-label="Status">
      <span class="medal"><${Icon} name=${icon} /></span>
      <div>
        <h2>${headline(delivery)}</h2>
        ${delivery.nextAttemptDate && html`<p><${Next} delivery=${delivery} webhook=${webhook} /></p>`}
        <${Condition} delivery=${delivery} webhook=${webhook} />
        ${own && html`<p>${answer ? "The endpoint responded: " : "Reason: "}<span class="outside" dir="auto">${own}</span></p>`}
        ${cause && html`<${Why} cause=${cause} />`}
        ${delivery.status === "failed" && webhook && !webhook.enabled && !delivery.erasedDate && html`<p>${DISABLED}</p>`}
        ${delivery.status === "cancelled" && !cause && !delivery.erasedDate && html`<p>${
          webhook ? CANCELLED[delivery.cancelReason] ?? ENABLED_AGAIN : REMOVED}</p>`}
      </div>
    </section>`;
}
