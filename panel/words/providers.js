// Payment providers, and how an authorization ended, in words.

/** The providers that are built in. An operator can add others, whose names are typed. */
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
 * What is said to somebody who comes back from a provider. Anybody can make up an address, so the list of connections says
 * whether it is connected, and the address only how it came to be.
 */
export function landing(outcome, provider, connection) {
  const name = label(provider);
  const account = connection?.account ? ` (${connection.account})` : "";
  if (connection?.status === "connected" && outcome === "connected") {
    return { tone: "good", icon: "delivered", title: `${name} is connected`,
      text: `Your account${account} is connected. There is nothing more to do.` };
  }
  return {
    connected: {
      tone: "bad", icon: "warning", title: `${name} is not connected`,
      text: "The provider gave its permission, but there is no working connection by now: somebody disconnected it, or it broke. Connect again.",
    },
    denied: {
      tone: "mute", icon: "cancelled", title: `${name} is not connected`,
      text: `You did not give the permission at ${name}, so that nothing was changed. You can connect again whenever you like.`,
    },
    failed: {
      tone: "bad", icon: "warning", title: `${name} is not connected`,
      text: `${name} could not give the permission, so that nothing was changed. Try again in a while; if it goes on, tell those who run this service.`,
    },
    "other-account": {
      tone: "warn", icon: "warning", title: `The other account was not connected`,
      text: `Another account${account} is connected at ${name}, and stays. To put yours in its place, connect again and say that it may replace the other.`,
    },
  }[outcome];
}

export const BROKEN = {
  refused: "The provider no longer accepts the permission: it was withdrawn there, or it ended. Connect again.",
  expired: "The access ended, and the provider gave nothing to renew it with. Connect again.",
};
