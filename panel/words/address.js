// How a webhook's events reach its subscriber, as the API names it and in words.
export const DELIVERIES = [["push", "Sent to an address"], ["pull", "Read from a feed"]];

export const deliveryInWords = (delivery) => new Map(DELIVERIES).get(delivery) ?? delivery;

/** The content of a delivery's body, as the API names it and in words. */
export const PAYLOADS = [["full", "The whole event"], ["thin", "The event without its data"]];

export const payloadInWords = (payload) => new Map(PAYLOADS).get(payload) ?? payload;

/** The address of a webhook, or the words shown if it has none. */
export const addressOf = ({ eventUrl }) => eventUrl ?? "Read from a feed";
