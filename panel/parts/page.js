// The head of every page: its title, which is also the window's and gets the focus, and its actions. A `title` with
// markup needs a `window` without markup.
import { html, useEffect, useRef } from "./html.js";
import { titled } from "../deployment.js";

let arrived = false;

export function Page({ title, above, beside, lead, children, window: name = title }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = titled(name);
  }, [name]);
  useEffect(() => {
    // On the first page, the focus stays where the browser put it.
    if (arrived) heading.current.focus({ preventScroll: true });
    arrived = true;
  }, []);
  return html`
    ${above && html`<p class="above">${above}</p>`}
    <header class="page-head">
      <div><h1 ref=${heading} tabIndex="-1" dir="auto">${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
      ${beside && html`<div class="actions">${beside}</div>`}
    </header>
    ${children}`;
}
