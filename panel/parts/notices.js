// What is said in passing, to eyes and to screen readers: that something was copied, sent, saved.
import { html, useEffect, useState } from "./html.js";

const listeners = new Set();

/** Says something for some seconds. */
export const say = (text) => listeners.forEach((listener) => listener(text));

export function Notices() {
  const [notice, become] = useState(null);
  useEffect(() => {
    let timer = null;
    const listener = (text) => {
      clearTimeout(timer);
      become(text);
      timer = setTimeout(() => become(null), 5000);
    };
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return html`<div class="notices" role="status" aria-live="polite">${notice && html`<p class="notice">${notice}</p>`}
    </div>`;
}
