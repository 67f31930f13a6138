// The success rate of webhooks: loaded for a list of webhooks, and shown in a sentence.
import { html, useEffect, useState } from "./html.js";
import { get } from "../api.js";
import { forEachOf } from "./load.js";
import { successWords } from "../words/health.js";

/** The interval of reloads in milliseconds: the statistics are read from many hours, and change slowly. */
const RELOAD_MS = 60_000;
/** The interval for a longer list than `MANY`, since each webhook is a call. */
const RELOAD_OF_MANY_MS = 300_000;
const MANY = 20;

/** The summaries of the last 24 hours by webhook, as far as they are loaded. */
export function useDays(webhooks) {
  const [days, become] = useState({});
  const ids = (webhooks ?? []).map(({ id }) => id).join();
  useEffect(() => {
    const all = ids.split(",").filter(Boolean);
    let over = false;
    let timer = null;
    const load = async (isFirst) => {
      if (isFirst || document.visibilityState === "visible") {
        await forEachOf(all, async (id) => {
          // A webhook that was removed in the meantime, or a failed call, shows no rate.
          const stats = await get(`/webhook/${encodeURIComponent(id)}/stats`).catch(() => null);
          if (stats && !over) become((before) => ({ ...before, [id]: stats.last24Hours }));
          return !over;
        });
      }
      if (!over) timer = setTimeout(load, all.length > MANY ? RELOAD_OF_MANY_MS : RELOAD_MS);
    };
    load(true);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [ids]);
  return days;
}

export const Success = ({ day }) => day && html`<p class="faint">${successWords(day)}</p>`;
