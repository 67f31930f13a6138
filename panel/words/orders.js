// The order of a webhook's deliveries, as the API names it and in words.
export const ORDERS = [["none", "Any order: each when it is due"], ["subject", "In order for each subject"]];

export const orderInWords = (order) => new Map(ORDERS).get(order) ?? order;
