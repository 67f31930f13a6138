// Reads a page of the list of deliveries. The service examines hundreds or thousands of deliveries for each response, which is
// empty if none of them match: then it is asked for older ones, until there is a match or the person stops it.
import { useRef, useState } from "./html.js";
import { get } from "../api.js";
import { useLoad } from "./load.js";

/** The deliveries on a page. */
const SIZE = 50;
/** The most responses for a page with a match. */
const RESPONSES = 5;
/** The most responses without any match; then the person decides whether to continue. */
const RESPONSES_WITHOUT_MATCH = 60;
/** The views whose deliveries are kept, so that a person who returns to one sees it at once. */
const VIEWS_KEPT = 20;

const views = new Map();

function keep(view, data) {
  views.delete(view);
  views.set(view, data);
  if (views.size > VIEWS_KEPT) views.delete(views.keys().next().value);
}

/** `mayContinue` learns the number of responses without a match. */
async function page(filters, start, mayContinue) {
  const items = [];
  let cursor = start;
  for (let responses = 1; ; responses += 1) {
    const found = await get("/webhook/delivery/list", { ...filters, cursor, limit: SIZE - items.length });
    items.push(...found.items);
    cursor = found.nextCursor;
    const most = items.length ? RESPONSES : RESPONSES_WITHOUT_MATCH;
    const isDone = !cursor || items.length >= SIZE || responses >= most;
    if (isDone || (!items.length && !mayContinue(responses))) return { items, cursor };
  }
}

/**
 * The deliveries of a view, which is the text of its address. `filters` are those of the API, and `start` is the cursor of the
 * page. `data` has the view that it belongs to, and `looked` is the number of responses without a match so far.
 */
export function useDeliveries(view, filters, start) {
  const [looked, look] = useState(0);
  const run = useRef({ view: null, isStopped: false });
  const list = useLoad(async () => {
    const before = views.get(view);
    const current = { view, isStopped: false };
    run.current = current;
    look(0);
    const data = await page(filters, start, (responses) => {
      if (run.current !== current) return false;
      look(responses);
      return !current.isStopped && !(before?.items.length && responses >= RESPONSES);
    });
    // A reload of a view whose matches are far back must not lose them.
    const isFarBack = !data.items.length && data.cursor && before?.items.length;
    const found = isFarBack ? before : { ...data, view, filters };
    if (run.current === current) keep(view, found);
    return found;
  }, [view], { keep: true, cached: () => views.get(view) });
  return { ...list, looked, stop: () => { run.current.isStopped = true; } };
}
