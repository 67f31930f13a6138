// The meaning of each scope, in the contract's words. One scope does not imply another.

export const SECTIONS = {
  account: {
    label: "Account",
    unlocks: "entities, team members, settings, applications",
    risk: "low to medium",
  },
  inventory: {
    label: "Inventory",
    unlocks: "properties, room-types, rate-plans, rates, add-ons, availability, activities, attractions",
    risk: "low to medium",
  },
  booking: {
    label: "Booking",
    unlocks: "search, view, create, cancel and refund bookings; checkout; cancellation policies",
    risk: "low to medium",
  },
  marketing: {
    label: "Marketing",
    unlocks: "campaigns, perks, sales channels, links, managed social, loyalty",
    risk: "low to medium",
  },
  content: {
    label: "Content",
    unlocks: "property descriptions, reviews, media, maps, green-index",
    risk: "low to medium",
  },
  analytics: {
    label: "Analytics",
    unlocks: "reporting and analytics: revenue, leaderboards",
    risk: "low to medium",
  },
  integrations: {
    label: "Integrations",
    unlocks: "channel managers, external booking systems, hotel-search listing, notification endpoints, booking sync",
    risk: "low to medium",
  },
  payment: {
    label: "Payment",
    unlocks: "payment processing, payment providers, payouts, subscriptions",
    risk: "medium to high",
  },
  accounting: {
    label: "Accounting",
    unlocks: "accounting, withdrawal ledger, reconciliation",
    risk: "medium to high",
  },
  mcp: {
    label: "AI agents",
    unlocks: "opens the MCP transport at /mcp for AI agents",
    risk: "low to medium",
  },
};

/** The meaning of each action. */
export const ACTION_MEANINGS = {
  read: "View resources",
  write: "Create and update resources",
  remove: "Delete resources",
};

export const ACTIONS = Object.keys(ACTION_MEANINGS);

export const ALL = Object.keys(SECTIONS).flatMap((section) => ACTIONS.map((action) => `${section}.${action}`));
