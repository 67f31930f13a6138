// Sentences with the names of members and values in backticks.
import { html } from "./html.js";

export const Words = ({ text }) => text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

/** The locale of all dates and numbers, so that a page does not mix two formats. */
export const LANGUAGE = "en-GB";

const number = new Intl.NumberFormat(LANGUAGE);

/** "1 delivery", "12 deliveries". */
export const counted = (count, one, many) => `${number.format(count)} ${count === 1 ? one : many}`;
