// The cause of a failure and its remedy: an entry of the table of causes.
import { html } from "./html.js";
import { Words } from "./words.js";

export const Why = ({ cause }) => html`
  <dl class="why">
    <div><dt>Why</dt><dd><${Words} text=${cause.meaning} /></dd></div>
    <div><dt>What to do</dt><dd><${Words} text=${cause.remedy} /></dd></div>
  </dl>`;
