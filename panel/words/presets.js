// Selections of scopes for a panel link, by the work of the person who gets it.

/** Each preset with its scopes; the first that the session may give is proposed. */
export const PRESETS = [
  {
    key: "support",
    label: "Support: view, retry and resend",
    hint: "Sees webhooks and deliveries, and sends deliveries again. The same scope permits changes to webhooks, but not their removal.",
    scopes: ["integrations.read", "integrations.write"],
  },
  {
    key: "viewer",
    label: "Read only",
    hint: "Sees every page of the panel, and changes nothing.",
    scopes: ["account.read", "integrations.read", "payment.read"],
  },
  {
    key: "developer",
    label: "Developer: all rights to webhooks",
    hint: "Creates, changes, tests and removes webhooks, and sees applications.",
    scopes: ["account.read", "integrations.read", "integrations.write", "integrations.remove"],
  },
  {
    key: "payments",
    label: "Payments: connect payment providers",
    hint: "Connects and disconnects payment providers. Sees no webhooks.",
    scopes: ["payment.read", "payment.write", "payment.remove"],
  },
];

/** The presets of which the session has every scope. */
export const offered = (scopes) => PRESETS.filter((preset) => preset.scopes.every((scope) => scopes.includes(scope)));
