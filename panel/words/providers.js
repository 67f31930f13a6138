// Payment providers and the outcomes of an authorization, in words.

/** The built-in providers. An operator can add others, whose names a person types. */
export const KNOWN = {
  adyen: "Adyen",
  mollie: "Mollie",
  paypal: "PayPal",
  revolut: "Revolut Business",
  square: "Square",
  stripe: "Stripe",
};

export const label = (provider) => KNOWN[provider] ?? provider;

/**
 * The text for a person who returns from a provider. Addresses can be forged, so the list of connections decides whether the
 * provider is connected, and the address only gives the reason.
 */
export function landing(outcome, provider, connection) {
  const name = label(provider);
  const account = connection?.account ? ` (${connection.account})` : "";
  if (connection?.status === "connected" && outcome === "connected") {
    return { tone: "good", icon: "delivered", title: `${name} is connected`,
      text: `Your account${account} is connected. No further step is needed.` };
  }
  return {
    connected: {
      tone: "bad", icon: "warning", title: `${name} is not connected`,
      text: "The provider gave its permission, but the connection no longer works: it was disconnected, or it broke. Connect again.",
    },
    denied: {
      tone: "mute", icon: "cancelled", title: `${name} is not connected`,
      text: `You did not give the permission at ${name}, so nothing was changed. You can connect again at any time.`,
    },
    failed: {
      tone: "bad", icon: "warning", title: `${name} is not connected`,
      text: `${name} could not give the permission, so nothing was changed. Try again later; if it continues to fail, inform the operator of this service.`,
    },
    "other-account": {
      tone: "warn", icon: "warning", title: `The other account was not connected`,
      text: `Another account${account} is connected at ${name}, and remains. To replace it with yours, connect again and confirm the replacement.`,
    },
  }[outcome];
}

export const BROKEN = {
  refused: "The provider no longer accepts the permission: it was withdrawn there, or it expired. Connect again.",
  expired: "The access expired, and the provider gave no refresh token. Connect again.",
};
