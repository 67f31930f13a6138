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
