// Short notices, visible and for screen readers: copied, sent, saved.
import { html, useEffect, useState } from "./html.js";
import { useHere } from "../address.js";

/** A notice survives an automatic change of the page within this time, in milliseconds. */
const NAVIGATION_MS = 1500;

const listeners = new Set();

/** Shows a notice for a few seconds. */
export const say = (text) => listeners.forEach((listener) => listener(text));

export function Notices() {
  const [notice, become] = useState(null);
  useEffect(() => {
    let timer = null;
    const listener = (text) => {
      clearTimeout(timer);
      become({ text, said: Date.now() });
      timer = setTimeout(() => become(null), 5000);
    };
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  const page = useHere().parts.join("/");
  useEffect(() => become((before) => (before && Date.now() - before.said > NAVIGATION_MS ? null : before)), [page]);
  return html`
    <div class="notices" role="status" aria-live="polite">
      ${notice && html`<p class="notice">${notice.text}</p>`}
    </div>`;
}
