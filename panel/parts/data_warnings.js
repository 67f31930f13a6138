// The warnings about an event whose data does not conform to its type's schema, or has too many values for filters.
import { html } from "./html.js";
import { Card } from "./card.js";
import { Words } from "./words.js";
import { nameOf } from "../refusal.js";

export const DataWarnings = ({ warnings }) => warnings && html`
  <${Card} title="Warnings about the data">
    <p>The event was published unchanged.</p>
    <ul>${warnings.map(({ pointer, detail }) => html`
      <li key=${pointer}><code>${nameOf(`/data${pointer}`)}</code> <${Words} text=${detail} /></li>`)}</ul>
  <//>`;
