// The deliveries: what became of every event, filtered; each view is an address.
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
/** The service looks at some hundred or thousand deliveries for a page; so many pages are asked for before a person is. */
const ROUNDS = 5;
const LIVE = 2000;

/** A page of deliveries, and where the next begins; short where what is wanted is rare. */
async function page(filters, start) {
  const items = [];
  let cursor = start;
  for (let round = 0; round < ROUNDS; round += 1) {
    const found = await get("/webhook/delivery/list", { ...filters, cursor, limit: SIZE - items.length });
    items.push(...found.items);
    cursor = found.nextCursor;
    if (!cursor || items.length >= SIZE) break;
  }
  return { items, cursor };
}

export default function Deliveries({ query }) {
  const [types, webhooks] = [useTypes(), useWebhooks()];
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
    <${Page} title="Deliveries" lead="Every event on its way to a webhook, the newest first."
      beside=${html`<${Switch} label="Live" value=${live} change=${toggle} />`}>
      <${DeliveryFilters} query=${query} types=${types} webhooks=${webhooks} />
      <${Problem} refusal=${list.error} retry=${list.reload} />
      ${!list.data && !list.error && html`<${Waiting} what="The deliveries are read" lines="8" />`}
      ${list.data?.items.length === 0 && html`<${Nothing} query=${query} hasMore=${list.data.cursor}
        hasWebhooks=${webhooks.length > 0} />`}
      ${list.data?.items.length > 0 && html`<${DeliveryTable} items=${list.data.items} fresh=${fresh} types=${types}
        webhooks=${webhooks} />`}
      ${list.data && html`<${Turns} query=${query} filters=${filters.current} list=${list.data} />`}
    <//>`;
}

/** The deliveries that were not there before; none of a list that was just opened. */
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
    return html`<${Empty} icon="search" title="Nothing found so far">
      <p>Thousands of deliveries were looked at, and none passes the filters. Look further back, or say when it was
      made.</p><//>`;
  }
  if (isFiltered(query)) {
    const { status = "" } = query;
    return html`<${Empty} icon="filter" title="Nothing passes these filters">
      ${status.includes("failed") && !status.includes("retrying") && html`
        <p>Those that are still being tried are under${" "}
        <a href=${address("/deliveries", { ...query, cursor: "", status: "retrying" })}>Retrying</a>.</p>`}
      <p><a href="/panel/deliveries">Show all deliveries</a></p><//>`;
  }
  if (!hasWebhooks) {
    return html`
      <${Empty} icon="webhooks" title="Begin with a webhook">
        <p>A webhook says where events are to be sent. Make one, send it a test event, and you see its delivery here.
          </p>
        <p><${LinkButton} to="/panel/webhooks/new" kind="primary" icon="plus">Make the first webhook<//></p>
      <//>`;
  }
  return html`
    <${Empty} icon="deliveries" title="Nothing was delivered yet">
      <p>Your webhook stands. Send it a test event, and its delivery comes up here.</p>
      <p><${LinkButton} to="/panel/webhooks" kind="primary">Go to the webhooks<//></p>
    <//>`;
}

/** Where the list goes on. A period that ends now is made one of fixed times, since a cursor is good for one filter. */
function Turns({ query, filters, list }) {
  const fixed = { ...query, live: "", period: "", from: filters.createdFrom, to: filters.createdTo };
  if (!query.cursor && !list.cursor) return html`<p class="turns faint">
    ${list.items.length > 0 && `${counted(list.items.length, "delivery", "deliveries")}, and no more.`}</p>`;
  return html`
    <nav class="turns" aria-label="Older and newer deliveries">
      ${query.cursor && html`<${LinkButton} to=${address("/deliveries", { ...query, cursor: "" })} icon="back">Newest
        <//>`}
      ${list.cursor ? html`<${LinkButton} to=${address("/deliveries", { ...fixed, cursor: list.cursor })}>
        ${list.items.length ? "Older" : "Look further back"}<//>` : html`<span class="faint">These are the oldest.
        </span>`}
    </nav>`;
}
