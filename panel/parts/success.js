// The success rate of webhooks: loaded for a list of webhooks, and shown in a sentence.
import { html, useEffect, useRef, useState } from "./html.js";
import { get } from "../api.js";
import { successWords } from "../words/health.js";

/** How many webhooks are asked for at once. */
const AT_ONCE = 4;
/** The interval of reloads in milliseconds: the statistics are read from many hours, and change slowly. */
const RELOAD_MS = 60_000;

/** The summaries of the last 24 hours by webhook, as far as they are loaded. */
export function useDays(webhooks) {
  const [days, become] = useState({});
  const ids = (webhooks ?? []).map(({ id }) => id).join();
  const left = useRef(false);
  useEffect(() => {
    left.current = false;
    const load = async () => {
      const waiting = ids.split(",").filter(Boolean);
      const next = async () => {
        for (let id = waiting.shift(); id && !left.current; id = waiting.shift()) {
          // A webhook that was removed meanwhile, or a failed call, shows no rate.
          const stats = await get(`/webhook/${encodeURIComponent(id)}/stats`).catch(() => null);
          if (stats) become((before) => ({ ...before, [id]: stats.last24Hours }));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, next));
    };
    load();
    const timer = setInterval(() => document.visibilityState === "visible" && load(), RELOAD_MS);
    return () => {
      left.current = true;
      clearInterval(timer);
    };
  }, [ids]);
  return days;
}

export const Success = ({ day }) => day && html`<p class="faint">${successWords(day)}</p>`;
