// The statuses of deliveries, webhooks and connections, in words and colours.

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
  unsteady: { tone: "warn", icon: "warning", word: "Some failures" },
  failing: { tone: "bad", icon: "warning", word: "Failing" },
  paused: { tone: "bad", icon: "paused", word: "Paused" },
  pausedByOwner: { tone: "calm", icon: "paused", word: "Paused" },
  disabled: { tone: "mute", icon: "cancelled", word: "Disabled" },
};

export const CONNECTION = {
  connected: { tone: "good", icon: "delivered", word: "Connected" },
  broken: { tone: "bad", icon: "warning", word: "Broken" },
};

/** The reason why an open delivery waits, as the end of a sentence about its next attempt. */
export function waits({ waitingFor }) {
  if (waitingFor === "schedule") return "on the retry schedule";
  if (waitingFor === "breaker") return "when the paused webhook is checked again; it waits for the endpoint to respond";
  if (waitingFor === "pause") return "when the pause of the webhook ends";
  if (waitingFor === "rate") return "when the webhook’s limit of attempts per second permits it";
  if (waitingFor === "reader") return "when a program reads the webhook’s feed";
  if (waitingFor === "limit") return "when other deliveries have finished; too many are being sent at once";
  return "";
}
