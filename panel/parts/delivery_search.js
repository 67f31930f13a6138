// Reads a page of the list of deliveries. The service examines hundreds or thousands of deliveries for each response,
// which is empty if none of them match. The panel then keeps asking for older ones until there is a match or the person
// stops it.
import { useRef, useState } from "./html.js";
import { get } from "../api.js";
import { useLoad } from "./load.js";

/** The deliveries on a page. */
const SIZE = 50;
/** The maximum number of responses to read for a page with a match. */
const RESPONSES = 5;
/** The maximum number of responses without a match. The person then decides whether to continue. */
const RESPONSES_WITHOUT_MATCH = 60;
/** The number of views whose deliveries are cached, so that a view appears at once when a person returns to it. */
const VIEWS_KEPT = 20;

const views = new Map();

function keep(view, data) {
  views.delete(view);
  views.set(view, data);
  if (views.size > VIEWS_KEPT) views.delete(views.keys().next().value);
}

/** The address of the list that the person saw last. */
export const lastView = () => [...views.keys()].at(-1) ?? "/panel/deliveries";

/**
 * The maximum number of responses without a match when a view is read. After the first search of a view, live updates
 * read only a few, since they would otherwise search continuously. A reload by the person searches as far back again.
 */
function mostWithoutMatch(reason, before) {
  if (!before || reason === "reload") return RESPONSES_WITHOUT_MATCH;
  if (before.items.length) return RESPONSES;
  return reason === "poll" || before.isStopped ? 1 : RESPONSES_WITHOUT_MATCH;
}

/** `mayContinue` gets the number of responses without a match. */
async function page(filters, start, mayContinue) {
  const items = [];
  let cursor = start;
  for (let responses = 1; ; responses += 1) {
    const found = await get("/webhook/delivery/list", { ...filters, cursor, limit: SIZE - items.length });
    // A later response may repeat a delivery from the last few minutes.
    const known = new Set(items.map(({ id }) => id));
    items.push(...found.items.filter(({ id }) => !known.has(id)));
    cursor = found.nextCursor;
    const isDone = !cursor || items.length >= SIZE;
    if (isDone || !(items.length ? responses < RESPONSES : mayContinue(responses))) return { items, cursor };
  }
}

/**
 * The deliveries of a view, which is the text of its address. `filters` are filters of the API, and `start` is the
 * cursor of the page. `data.view` is the view of the data, and `looked` is the number of responses without a match so
 * far. `reload` is for a person, or after an action; `poll` checks for new deliveries, unless a search is running.
 */
export function useDeliveries(view, filters, start) {
  const [looked, look] = useState(0);
  const run = useRef({ isStopped: false, isRunning: false });
  const reason = useRef("visit");
  const list = useLoad(async () => {
    const before = views.get(view);
    const most = mostWithoutMatch(reason.current, before);
    reason.current = "visit";
    const current = { isStopped: false, isRunning: true };
    run.current = current;
    look(0);
    try {
      const data = await page(filters, start, (responses) => {
        if (run.current !== current || current.isStopped || responses >= most) return false;
        look(responses);
        return true;
      });
      // A shorter search must not discard the matches and cursor of the previous, longer one.
      const isShorter = most < RESPONSES_WITHOUT_MATCH && !data.items.length && data.cursor;
      const found = isShorter ? before : { ...data, view, filters, isStopped: current.isStopped };
      if (run.current === current) keep(view, found);
      return found;
    } finally {
      current.isRunning = false;
    }
  }, [view], { keep: true, cached: () => views.get(view) });
  const readFor = (given) => {
    reason.current = given;
    return list.reload();
  };
  return {
    ...list,
    looked,
    stop: () => { run.current.isStopped = true; },
    reload: () => readFor("reload"),
    poll: async () => { if (!run.current.isRunning) await readFor("poll"); },
  };
}
