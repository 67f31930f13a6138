// How deliveries and webhooks stand, in words and colours.

/** The tone is a colour of design.css, the icon one of parts/icon.js. */
export const DELIVERY = {
  pending: { tone: "calm", icon: "pending", word: "Pending" },
  retrying: { tone: "warn", icon: "retrying", word: "Retrying" },
  delivered: { tone: "good", icon: "delivered", word: "Delivered" },
  failed: { tone: "bad", icon: "failed", word: "Failed" },
  cancelled: { tone: "mute", icon: "cancelled", word: "Cancelled" },
};

export const WEBHOOK = {
  active: { tone: "good", icon: "delivered", word: "Active" },
  failing: { tone: "warn", icon: "warning", word: "Failing" },
  paused: { tone: "bad", icon: "paused", word: "Paused" },
  disabled: { tone: "mute", icon: "cancelled", word: "Disabled" },
};

export const CONNECTION = {
  connected: { tone: "good", icon: "delivered", word: "Connected" },
  broken: { tone: "bad", icon: "warning", word: "Broken" },
};

/** Why an open delivery has no attempt at this moment, as the end of a sentence about its next attempt. */
export function waits({ status, waitingFor }) {
  if (waitingFor === "schedule") return "as the schedule of retries says";
  if (waitingFor === "breaker") return "when the webhook, which is paused, is looked at again: it waits until the endpoint answers";
  if (waitingFor === "limit") return "as soon as its turn comes: it is due, and much else is under way";
  return status === "pending" || status === "retrying" ? "at this moment" : "";
}
