// Sentences with names of members and values in backticks.
import { html } from "./html.js";

export const Words = ({ text }) => text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

/** "1 delivery", "12 deliveries". */
export const counted = (count, one, many) => `${new Intl.NumberFormat().format(count)} ${count === 1 ? one : many}`;
