// The warnings about an event whose data do not conform to the schema of its type, or have too many values for filters.
import { html } from "./html.js";
import { Card } from "./card.js";
import { Words } from "./words.js";

export const DataWarnings = ({ texts }) => texts && html`
  <${Card} title="Warnings about the data">
    <p>The event was published unchanged.</p>
    <ul>${texts.map((text) => html`<li key=${text}><${Warning} text=${text} /></li>`)}</ul>
  <//>`;

/** A warning is a sentence about the data, or about a member of them, whose JSON Pointer comes first. */
function Warning({ text }) {
  const [, pointer = "", detail = text] = /^(\/.*?): (.*)$/s.exec(text) ?? [];
  return html`<code>data${pointer}</code> <${Words} text=${detail} />`;
}
