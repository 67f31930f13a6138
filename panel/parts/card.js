// A section of a page with a title.
import { html, useId } from "./html.js";

export function Card({ title, plain, children }) {
  const name = useId();
  return html`
    <section class=${plain ? "group" : "card"} aria-labelledby=${name}>
      <h2 id=${name}>${title}</h2>
      ${children}
    </section>`;
}
