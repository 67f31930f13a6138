// The list of deliveries, with filters. Each view has an address.
import { html, useEffect, useRef, useState } from "../parts/html.js";
import { address, go, usePosition } from "../address.js";
import { Attention, Calm, useAttention } from "../parts/attention.js";
import { DeliveryTable } from "../parts/delivery_table.js";
import { DeliveryFilters, filtersOf, isFiltered } from "../parts/delivery_filters.js";
import { useDeliveries } from "../parts/delivery_search.js";
import { Selection, useSelection } from "../parts/delivery_selection.js";
import { Empty, Waiting } from "../parts/empty.js";
import { useExpiredCursor } from "../parts/expired_cursor.js";
import { LinkButton } from "../parts/action.js";
import { Page } from "../parts/page.js";
import { NotFound } from "../parts/search.js";
import { Problem } from "../parts/problem.js";
import { Switch } from "../parts/field.js";
import { counted } from "../parts/words.js";
import { useTypes, webhooks as readWebhooks } from "../parts/known.js";
import { useLoad, usePolling } from "../parts/load.js";

const LIVE_MS = 2000;
const WEBHOOKS_MS = 30_000;

const deliveries = (count) => counted(count, "delivery", "deliveries");

export default function Deliveries({ query }) {
  const types = useTypes();
  const { data: webhooks, reload: readAgain } = useLoad(readWebhooks, []);
  usePolling(readAgain, WEBHOOKS_MS, Boolean(webhooks));
  const attention = useAttention(webhooks);
  const { live: liveness, ...rest } = query;
  const view = address("/deliveries", rest);
  const list = useDeliveries(view, filtersOf(query), query.cursor);
  const selection = useSelection(view);
  const isExpired = useExpiredCursor("/deliveries", query, list.error);
  const isLive = liveness === "on" && !query.cursor;
  usePolling(list.poll, LIVE_MS, isLive);
  const isStale = Boolean(list.data) && list.data.view !== view;
  usePosition(view, Boolean(list.data) && !isStale);
  const items = list.data?.items ?? [];
  const fresh = useFresh(list.data);
  const toggle = (on) => go(address("/deliveries", { ...query, cursor: "", live: on ? "on" : "" }), { replace: true });
  const isLooking = list.loading && list.looked > 0 && (isStale || !items.length);

  return html`
    <${Page} title="Deliveries" beside=${html`
      <${Calm} ...${attention} /><${Switch} label="Live" value=${isLive} change=${toggle} />`}>
      ${!query.subject && !query.event && html`<${Attention} ...${attention} />`}
      <${DeliveryFilters} query=${query} types=${types} webhooks=${webhooks ?? []} />
      <${Problem} refusal=${isExpired ? undefined : list.error} retry=${list.reload} />
      <p class="unseen" role="status">${list.data && !isStale && !list.loading && foundWords(items, list.data.cursor)}</p>
      ${isLooking && html`<${Looking} ...${list} />`}
      ${!list.data && !list.error && !isLooking && html`<${Waiting} what="Loading deliveries" lines="8" />`}
      ${list.data && !isStale && !isLooking && !items.length && html`<${Nothing} query=${query} hasMore=${list.data.cursor}
        ...${{ types, webhooks }} />`}
      ${items.length > 0 && !isLooking && html`
        <${DeliveryTable} ...${{ items, fresh, types, webhooks, selection, isStale }}
          byEvent=${Boolean(query.subject || query.event)} />`}
      <${Selection} items=${items.filter(({ id }) => selection.chosen.has(id))} ...${{ selection, reload: list.reload }} />
      ${list.data && !isStale && !isLooking && html`<${Paging} query=${query} list=${list.data} />`}
    <//>`;
}

const foundWords = (items, hasMore) => (items.length
  ? `${deliveries(items.length)}${hasMore ? ", and there are older ones" : ""}`
  : hasMore ? "No match so far" : "No deliveries");

/** The deliveries that were not in the list before; none if the list was just opened. */
function useFresh(data) {
  const known = useRef({ view: null, ids: new Set() });
  const [fresh, become] = useState(new Set());
  useEffect(() => {
    if (!data) return;
    const { view, items } = data;
    const before = known.current;
    if (before.view === view) become(new Set(items.map(({ id }) => id).filter((id) => !before.ids.has(id))));
    known.current = { view, ids: new Set(items.map(({ id }) => id)) };
  }, [data]);
  return fresh;
}

const Looking = ({ looked, stop }) => html`
  <${Empty} icon="search" title="Looking further back…">
    <p role="status">No match among the newest deliveries. Searching older ones.</p>
    <p class="fine" aria-hidden="true">${counted(looked, "page", "pages")} searched</p>
    <p><button type="button" onClick=${stop}>Stop</button></p>
  <//>`;

function Nothing({ query, hasMore, types, webhooks }) {
  if (hasMore) {
    return html`<${Empty} icon="search" title="No match so far">
      <p>Older deliveries have not been searched. Continue, or use “Created” to narrow the search.</p><//>`;
  }
  if (isFiltered(query)) {
    const { status = "", subject, event } = query;
    const others = Object.keys(query).filter((name) => !["subject", "event", "live", "cursor"].includes(name)).join();
    const title = subject && (others ? others === "status" && status === "failed" && " has failed" : " was found");
    return html`<${Empty} icon="filter" title=${title ? html`No delivery about <bdi>${subject}</bdi>${title}`
      : "No delivery matches these filters"}>
      ${subject && html`<${NotFound} ...${{ subject, types, webhooks: webhooks ?? [] }} />`}
      ${status.includes("failed") && !status.includes("retrying") && html`
        <p>Deliveries that are still being retried are under${" "}
        <a href=${address("/deliveries", { ...query, cursor: "", status: "retrying" })}>Retrying</a>.</p>`}
      ${event && others && html`
        <p><a href=${address("/deliveries", { event })}>Search all deliveries for <bdi>${event}</bdi></a></p>`}
      <p><a href="/panel/deliveries">Show all deliveries</a></p><//>`;
  }
  if (webhooks?.length === 0) {
    return html`
      <${Empty} icon="webhooks" title="Start with a webhook">
        <p>A webhook defines where events are sent. Create one and send it a test event. The delivery then appears
          here.</p>
        <p><${LinkButton} to="/panel/webhooks/new" kind="primary" icon="plus">Create the first webhook<//></p>
      <//>`;
  }
  return html`
    <${Empty} icon="deliveries" title="No deliveries yet">
      <p>Your webhook is ready. Send it a test event. The delivery then appears here.</p>
      <p><${LinkButton} to="/panel/webhooks" kind="primary">Go to webhooks<//></p>
    <//>`;
}

/** Links to newer and older pages. Fixed times replace a relative period: a cursor is valid for one filter only. */
function Paging({ query, list: { items, cursor, filters } }) {
  const fixed = { ...query, live: "", period: "", from: filters.createdFrom, to: filters.createdUntil };
  if (!query.cursor && !cursor) {
    return items.length > 0 && html`<p class="turns faint">${deliveries(items.length)} in total.</p>`;
  }
  return html`
    <nav class="turns" aria-label="Older and newer deliveries">
      ${query.cursor && html`<${LinkButton} to=${address("/deliveries", { ...query, cursor: "" })} icon="back">Newest
        <//>`}
      ${cursor ? html`<${LinkButton} to=${address("/deliveries", { ...fixed, cursor })}>
        ${items.length ? "Older" : "Search older deliveries"}<//>` : html`<span class="faint">No older deliveries.
        </span>`}
    </nav>`;
}
