// What each scope allows, by section. One scope does not imply another.

export const SECTIONS = {
  account: {
    label: "Accounts",
    read: "Read applications and accounts.",
    write: "Create and change applications and accounts.",
    remove: "Remove applications and accounts.",
  },
  inventory: {
    label: "Inventory",
    read: "Read units, rates and availability.",
    write: "Create and change units, rates and availability.",
    remove: "Remove units, rates and availability.",
  },
  booking: {
    label: "Bookings",
    read: "Read bookings.",
    write: "Create and change bookings.",
    remove: "Remove bookings.",
  },
  marketing: {
    label: "Marketing",
    read: "Read campaigns, promotions and reviews.",
    write: "Create and change campaigns, promotions and reviews.",
    remove: "Remove campaigns, promotions and reviews.",
  },
  content: {
    label: "Content",
    read: "Read descriptions, photos and pages.",
    write: "Create and change descriptions, photos and pages.",
    remove: "Remove descriptions, photos and pages.",
  },
  analytics: {
    label: "Analytics",
    read: "Read reports and forecasts.",
    write: "Create and change reports and forecasts.",
    remove: "Remove reports and forecasts.",
  },
  integrations: {
    label: "Integrations",
    read: "Read webhooks, deliveries and event types.",
    write: "Create, change and test webhooks, send deliveries again, and publish events where the application may (`mayPublish`).",
    remove: "Remove webhooks, and end signing secrets of theirs that were replaced.",
  },
  payment: {
    label: "Payments",
    read: "Read payments and connections to payment providers.",
    write: "Create and change payments and connections to payment providers.",
    remove: "Remove connections to payment providers.",
  },
  accounting: {
    label: "Accounting",
    read: "Read invoices, statements and the ledger.",
    write: "Create and change invoices, statements and ledger entries.",
    remove: "Remove invoices, statements and ledger entries.",
  },
  mcp: {
    label: "AI agents",
    read: "Use the tools of the Model Context Protocol that read.",
    write: "Use the tools of the Model Context Protocol that change something.",
    remove: "Use the tools of the Model Context Protocol that remove something.",
  },
};

export const ACTIONS = ["read", "write", "remove"];

export const ALL = Object.keys(SECTIONS).flatMap((section) => ACTIONS.map((action) => `${section}.${action}`));
