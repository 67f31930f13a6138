// The list of deliveries, with filters; each view has an address.
import { html, useEffect, useRef, useState } from "../parts/html.js";
import { get } from "../api.js";
import { address, go } from "../address.js";
import { DeliveryTable } from "../parts/delivery_table.js";
import { DeliveryFilters, filtersOf, isFiltered } from "../parts/delivery_filters.js";
import { Empty, Waiting } from "../parts/empty.js";
import { LinkButton } from "../parts/action.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Switch } from "../parts/field.js";
import { counted } from "../parts/words.js";
import { useTypes, useWebhooks } from "../parts/known.js";
import { useLoad, usePolling } from "../parts/load.js";

const SIZE = 50;
/** The service examines hundreds or thousands of deliveries per page; so many pages are read before the person must continue. */
const PAGES = 5;
const LIVE = 2000;

/** A page of deliveries and the cursor of the next; short if matching deliveries are rare. */
async function page(filters, start) {
  const items = [];
  let cursor = start;
  for (let round = 0; round < PAGES; round += 1) {
    const found = await get("/webhook/delivery/list", { ...filters, cursor, limit: SIZE - items.length });
    items.push(...found.items);
    cursor = found.nextCursor;
    if (!cursor || items.length >= SIZE) break;
  }
  return { items, cursor };
}

export default function Deliveries({ query }) {
  const types = useTypes();
  const webhooks = useWebhooks();
  const wanted = JSON.stringify(query);
  const filters = useRef({});
  const list = useLoad(() => {
    filters.current = filtersOf(query);
    return page(filters.current, query.cursor);
  }, [wanted], { keep: true });
  const live = query.live === "on" && !query.cursor;
  usePolling(list.reload, LIVE, live);
  const fresh = useFresh(list.data?.items, wanted);
  const toggle = (on) => go(address("/deliveries", { ...query, cursor: "", live: on ? "on" : "" }), { replace: true });

  return html`
    <${Page} title="Deliveries" lead="Events on their way to webhooks, the newest first."
      beside=${html`<${Switch} label="Live" value=${live} change=${toggle} />`}>
      <${DeliveryFilters} query=${query} types=${types} webhooks=${webhooks} />
      <${Problem} refusal=${list.error} retry=${list.reload} />
      ${!list.data && !list.error && html`<${Waiting} what="Loading the deliveries" lines="8" />`}
      ${list.data?.items.length === 0 && html`<${Nothing} query=${query} hasMore=${list.data.cursor}
        hasWebhooks=${webhooks.length > 0} />`}
      ${list.data?.items.length > 0 && html`<${DeliveryTable} items=${list.data.items} fresh=${fresh} types=${types}
        webhooks=${webhooks} />`}
      ${list.data && html`<${Paging} query=${query} filters=${filters.current} list=${list.data} />`}
    <//>`;
}

/** The deliveries that were not in the list before; none of a list that was just opened. */
function useFresh(items, view) {
  const known = useRef({ view: null, ids: new Set() });
  const [fresh, become] = useState(new Set());
  useEffect(() => {
    if (!items) return;
    const before = known.current;
    if (before.view === view) become(new Set(items.map(({ id }) => id).filter((id) => !before.ids.has(id))));
    known.current = { view, ids: new Set(items.map(({ id }) => id)) };
  }, [items]);
  return fresh;
}

function Nothing({ query, hasMore, hasWebhooks }) {
  if (hasMore) {
    return html`<${Empty} icon="search" title="No match so far">
      <p>No match among thousands of deliveries. Continue with older ones, or filter by the time of creation.</p><//>`;
  }
  if (isFiltered(query)) {
    const { status = "" } = query;
    return html`<${Empty} icon="filter" title="No delivery matches these filters">
      ${status.includes("failed") && !status.includes("retrying") && html`
        <p>Deliveries that are still being retried are under${" "}
        <a href=${address("/deliveries", { ...query, cursor: "", status: "retrying" })}>Retrying</a>.</p>`}
      <p><a href="/panel/deliveries">Show all deliveries</a></p><//>`;
  }
  if (!hasWebhooks) {
    return html`
      <${Empty} icon="webhooks" title="Start with a webhook">
        <p>A webhook defines where events are sent. Create one and send it a test event: its delivery appears here.</p>
        <p><${LinkButton} to="/panel/webhooks/new" kind="primary" icon="plus">Create the first webhook<//></p>
      <//>`;
  }
  return html`
    <${Empty} icon="deliveries" title="No deliveries yet">
      <p>Your webhook is ready. Send it a test event: its delivery appears here.</p>
      <p><${LinkButton} to="/panel/webhooks" kind="primary">Go to the webhooks<//></p>
    <//>`;
}

/** Links to newer and older pages. A period that ends now becomes one with fixed times: a cursor is valid for one filter only. */
function Paging({ query, filters, list }) {
  const fixed = { ...query, live: "", period: "", from: filters.createdFrom, to: filters.createdTo };
  if (!query.cursor && !list.cursor) return html`<p class="turns faint">
    ${list.items.length > 0 && `${counted(list.items.length, "delivery", "deliveries")}, and no more.`}</p>`;
  return html`
    <nav class="turns" aria-label="Older and newer deliveries">
      ${query.cursor && html`<${LinkButton} to=${address("/deliveries", { ...query, cursor: "" })} icon="back">Newest
        <//>`}
      ${list.cursor ? html`<${LinkButton} to=${address("/deliveries", { ...fixed, cursor: list.cursor })}>
        ${list.items.length ? "Older" : "Continue with older ones"}<//>` : html`<span class="faint">These are the oldest.
        </span>`}
    </nav>`;
}
