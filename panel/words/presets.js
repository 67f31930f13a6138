// Selections of scopes for a panel link, by the job of the person who gets it.

/** Each preset with its scopes; the first that the session may give is proposed. */
export const PRESETS = [
  {
    key: "support",
    label: "Support: view, recover and resend",
    hint: "Can view webhooks and deliveries, and resend deliveries. Can also create and change webhooks, but not remove them.",
    scopes: ["integrations.read", "integrations.write"],
  },
  {
    key: "viewer",
    label: "Read only",
    hint: "Can view every page of the panel, and change nothing.",
    scopes: ["account.read", "integrations.read", "payment.read"],
  },
  {
    key: "developer",
    label: "Developer: manage webhooks",
    hint: "Can create, change, test and remove webhooks, and view applications.",
    scopes: ["account.read", "integrations.read", "integrations.write", "integrations.remove"],
  },
  {
    key: "payments",
    label: "Payments: connect payment providers",
    hint: "Can connect and disconnect payment providers. Cannot view webhooks.",
    scopes: ["payment.read", "payment.write", "payment.remove"],
  },
];

/** The presets whose scopes the session has. */
export const offered = (scopes) => PRESETS.filter((preset) => preset.scopes.every((scope) => scopes.includes(scope)));
