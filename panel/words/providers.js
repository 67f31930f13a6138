// The outcomes of an authorization at a payment provider, in words.

/**
 * The text for a person who returns from a provider. Addresses can be forged, so the list of connections decides
 * whether the provider is connected, and the address only gives the reason.
 */
export function landing(outcome, name, connection) {
  const account = connection?.account ? ` (${connection.account})` : "";
  if (connection?.status === "connected" && outcome === "connected") {
    return { tone: "good", icon: "delivered", title: `${name} is connected`,
      text: `Your account${account} is connected. There is nothing else to do.` };
  }
  return {
    connected: {
      tone: "bad", icon: "warning", title: `${name} is not connected`,
      text: "You allowed access, but the connection has ended or stopped working since then. Connect again.",
    },
    denied: {
      tone: "mute", icon: "cancelled", title: `${name} is not connected`,
      text: `You did not allow access at ${name}, so nothing was changed. You can connect at any time.`,
    },
    failed: {
      tone: "bad", icon: "warning", title: `${name} is not connected`,
      text: `${name} reported an error, so nothing was changed. Try again later. If it fails again, contact this service’s operator.`,
    },
    "other-account": {
      tone: "warn", icon: "warning", title: "Your account was not connected",
      text: `Another ${name} account${account} is already connected, and stays connected. To replace it with yours, connect again and confirm the replacement.`,
    },
  }[outcome];
}

export const BROKEN = {
  refused: "The provider no longer accepts this connection: access was withdrawn there, or it expired. Connect again.",
  expired: "Access expired, and cannot be renewed automatically. Connect again.",
};
