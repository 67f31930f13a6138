// The warnings about an event whose data do not conform to the schema of its type.
import { html } from "./html.js";
import { Card } from "./card.js";

export const DataWarnings = ({ texts }) => texts && html`
  <${Card} title="Warnings about the data">
    <p>The data of the event do not conform to the schema of its type. They were published unchanged.</p>
    <ul>${texts.map((text) => html`<li key=${text}>${text}</li>`)}</ul>
  <//>`;
