// The state of API reads and actions: data, progress and error.
import { useCallback, useEffect, useRef, useState } from "./html.js";
import { awaits, isAway } from "./outage.js";

/** The interval at which a page tries again while the service is down, in milliseconds. */
const RECOVERY_MS = 5000;

/**
 * Reads when `inputs` change, and again when a missing connection or the service is back. With `keep`, the previous data
 * remains until the new data arrives. `cached` returns data of these inputs to show at once, if there is any. An outage is an
 * error only without data: otherwise the frame of the page reports it.
 */
export function useLoad(read, inputs, { keep = false, cached } = {}) {
  const [state, become] = useState(() => ({ loading: true, data: cached?.() }));
  const generation = useRef(0);
  const latest = useRef(read);
  latest.current = read;

  const load = useCallback(async () => {
    const mine = ++generation.current;
    become((before) => ({ ...before, loading: true }));
    try {
      const data = await latest.current();
      if (mine === generation.current) become({ data, loading: false });
    } catch (error) {
      if (mine === generation.current) become((before) => ({ data: before.data, error, loading: false }));
    }
  }, []);

  useEffect(() => {
    const known = cached?.();
    if (known) become({ loading: true, data: known });
    else if (!keep) become({ loading: true });
    load();
    return () => { generation.current += 1; };
  }, inputs);
  const isWaiting = Boolean(state.error?.isOutage);
  const hasData = state.data !== undefined;
  usePolling(load, RECOVERY_MS, isWaiting, true);
  useEffect(() => {
    if (!isWaiting) return undefined;
    addEventListener("online", load);
    return () => removeEventListener("online", load);
  }, [isWaiting]);
  useEffect(() => (isWaiting && hasData ? awaits(load) : undefined), [isWaiting, hasData]);
  return { ...state, error: isWaiting && hasData ? undefined : state.error, reload: load, replace: (data) => become({ data, loading: false }) };
}

/**
 * Reads when `inputs` change, and again when the connection or the service is back. With `keep`, the previous data
 * remains until the new data arrives. `cached` returns data of these inputs to show at once, if there is any. An outage
 * is an error only if there is no data: otherwise the frame of the page reports it.
 */
export function usePolling(act, every, wanted, recovers = false) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (!wanted) return undefined;
    let timer = null;
    let over = false;
    const tick = async () => {
      const mayAct = document.visibilityState === "visible" && navigator.onLine && (recovers || !isAway());
      if (mayAct) await latest.current();
      if (!over) timer = setTimeout(tick, every);
    };
    timer = setTimeout(tick, every);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [every, wanted]);
}

/** An action of a person: whether it is running, and its refusal. */
export function useAction(act) {
  const [state, become] = useState({ busy: false });
  const alive = useRef(true);
  useEffect(() => () => { alive.current = false; }, []);
  const run = async (...given) => {
    become({ busy: true });
    try {
      const result = await act(...given);
      if (alive.current) become({ busy: false });
      return result;
    } catch (refusal) {
      if (alive.current) become({ busy: false, refusal });
      return undefined;
    }
  };
  /** Removes the violations of a member that the person has changed. */
  const forgive = (field) => become((before) =>
    (before.refusal?.without ? { ...before, refusal: before.refusal.without(field) } : before));
  return { ...state, run, forgive };
}

/** The simultaneous calls of an action for several items. */
const AT_ONCE = 4;

/** Calls `act` for each item, a few at once, until it returns `false`. */
export async function forEachOf(items, act) {
  const left = [...items];
  const work = async () => {
    while (left.length) if ((await act(left.shift())) === false) left.length = 0;
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Whether the browser has a connection. */
export function useOnline() {
  const [isOnline, become] = useState(navigator.onLine);
  useEffect(() => {
    const listener = () => become(navigator.onLine);
    listener();
    for (const event of ["online", "offline"]) addEventListener(event, listener);
    return () => { for (const event of ["online", "offline"]) removeEventListener(event, listener); };
  }, []);
  return isOnline;
}

/** Whether a media query matches. */
export function useMedia(query) {
  const [matches, become] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const listener = () => become(media.matches);
    listener();
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  }, [query]);
  return matches;
}
