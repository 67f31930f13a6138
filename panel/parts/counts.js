// Counts of a webhook's deliveries. A count is exact only if the list was read to its last page, which has no cursor.
import { get } from "../api.js";
import { counted } from "./words.js";

const PAGE_SIZE = 100;
const MAX_PAGES = 10;

/** The deliveries that match these filters of the API, from at most `pages` pages. `exact` means that these are all. */
export async function collect(filters, pages = MAX_PAGES) {
  // Pages may repeat a delivery from the last few minutes.
  const found = new Map();
  let cursor;
  for (let page = 0; page < pages; page += 1) {
    const list = await get("/webhook/delivery/list", { ...filters, limit: PAGE_SIZE, cursor });
    list.items.forEach((delivery) => found.set(delivery.id, delivery));
    cursor = list.nextCursor;
    if (!cursor) break;
  }
  return { items: [...found.values()], exact: !cursor };
}

/** Counts the deliveries that match these filters of the API and `isWanted`. Reads at most a thousand. */
export async function count(filters, isWanted = () => true) {
  const { items, exact } = await collect(filters);
  return { found: items.filter(isWanted).length, exact };
}

/** The latest deliveries of a webhook. `exact` is false if an empty list may be incomplete. */
export async function latestOf(webhook, limit) {
  let list = { items: [] };
  for (let page = 0; page < MAX_PAGES; page += 1) {
    list = await get("/webhook/delivery/list", { webhookIdentifier: webhook, limit, cursor: list.nextCursor });
    if (list.items.length || !list.nextCursor) break;
  }
  return { items: list.items, exact: list.items.length > 0 || !list.nextCursor };
}

/**
 * Whether a webhook may have deliveries to recover: `false` only if it is certain that none has failed, was cancelled
 * or waits after a failed attempt.
 */
export async function mayHaveFailed(webhook) {
  const list = await get("/webhook/delivery/list",
    { webhookIdentifier: webhook, status: "failed,cancelled,retrying", limit: 1 });
  return list.items.length > 0 || Boolean(list.nextCursor);
}

/** Whether it is certain that there are none. */
export const isNone = ({ found, exact }) => exact && found === 0;

export const sum = (one, other) => ({ found: one.found + other.found, exact: one.exact && other.exact });

/** "12 deliveries", "at least 1,000 deliveries"; an unfinished count of 0 is an unknown number. */
export const countWords = ({ found, exact }) => {
  if (!exact && found === 0) return "an unknown number of deliveries";
  return `${exact ? "" : "at least "}${counted(found, "delivery", "deliveries")}`;
};

/** The words of `countWords` as the beginning of a sentence. */
export const countSentence = (amount) => {
  const words = countWords(amount);
  return words[0].toUpperCase() + words.slice(1);
};
