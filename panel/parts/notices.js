// What is said in passing, to eyes and to screen readers: that something was copied, sent, saved.
import { html, useEffect, useState } from "./html.js";
import { useHere } from "../address.js";

/** What is said of a change stays when the page goes on by itself after it, which takes no longer. */
const ARRIVAL = 1500;

const listeners = new Set();

/** Says something for some seconds. */
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
  const place = useHere().parts.join("/");
  useEffect(() => become((before) => (before && Date.now() - before.said > ARRIVAL ? null : before)), [place]);
  return html`
    <div class="notices" role="status" aria-live="polite">
      ${notice && html`<p class="notice">${notice.text}</p>`}
    </div>`;
}
