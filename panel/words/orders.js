// The order of a webhook's deliveries, as the API names it and in words.
export const ORDERS = [["none", "Each when it is due"], ["subject", "One after another by subject"]];

export const orderInWords = (order) => new Map(ORDERS).get(order) ?? order;
