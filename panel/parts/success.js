// Webhooks' success rates: loaded for a list of webhooks, and shown for each and for all.
import { html, useEffect, useState } from "./html.js";
import { get } from "../api.js";
import { forEachOf } from "./load.js";
import { Card } from "./card.js";
import { counted } from "./words.js";
import { share, successWords } from "../words/health.js";

/** The interval of reloads in milliseconds: the statistics are read from many hours, and change slowly. */
const RELOAD_MS = 60_000;
/** The interval for a list longer than `MANY`, since each webhook is a call. */
const RELOAD_OF_MANY_MS = 300_000;
const MANY = 20;

/** The statistics by webhook, as far as they are loaded. */
export function useStats(webhooks) {
  const [all, become] = useState({});
  const ids = (webhooks ?? []).map(({ id }) => id).join();
  useEffect(() => {
    const wanted = ids.split(",").filter(Boolean);
    let over = false;
    let timer = null;
    const load = async (isFirst) => {
      if (isFirst || document.visibilityState === "visible") {
        await forEachOf(wanted, async (id) => {
          // A webhook that was removed in the meantime, or a failed call, shows no rate.
          const stats = await get(`/webhook/${encodeURIComponent(id)}/stats`).catch(() => null);
          if (stats && !over) become((before) => ({ ...before, [id]: stats }));
          return !over;
        });
      }
      if (!over) timer = setTimeout(load, wanted.length > MANY ? RELOAD_OF_MANY_MS : RELOAD_MS);
    };
    load(true);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [ids]);
  return all;
}

export const Success = ({ day }) => day && html`<p class="faint">${successWords(day)}</p>`;

/** The attempts of all webhooks: the sums of their statistics, once these are loaded. */
export function Overview({ webhooks, stats }) {
  const known = webhooks.map(({ id }) => stats[id]).filter(Boolean);
  if (webhooks.length < 2 || !known.length) return null;
  const missing = webhooks.length - known.length;
  return html`
    <${Card} title="All webhooks">
      <div class="charts"><${Total} title="Last 24 hours" summaries=${known.map(({ last24Hours }) => last24Hours)} />
        <${Total} title="Last 7 days" summaries=${known.map(({ last7Days }) => last7Days)} /></div>
      ${missing > 0 && html`<p class="fine">Without ${counted(missing, "webhook", "webhooks")} whose statistics are not loaded.</p>`}
    <//>`;
}

function Total({ title, summaries }) {
  const sum = (member) => summaries.reduce((total, summary) => total + summary[member], 0);
  const attempts = sum("attempts");
  const failed = attempts - sum("succeeded");
  return html`
    <div class="chart"><h3>${title}</h3>${attempts ? html`
      <p class="figure"><strong>${share(1 - failed / attempts)}</strong> <span>of ${counted(attempts, "attempt", "attempts")}${" "}
        succeeded, ${failed ? counted(failed, "failed", "failed") : "none failed"}</span></p>` : html`<p class="faint">No attempts.</p>`}
    </div>`;
}
