// The state of reads and actions at the API: data, progress and error.
import { useCallback, useEffect, useRef, useState } from "./html.js";

/** Reads when `inputs` change. With `keep`, the previous data remains until the new data arrives. */
export function useLoad(read, inputs, { keep = false } = {}) {
  const [state, become] = useState({ loading: true });
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
    if (!keep) become({ loading: true });
    load();
    return () => { generation.current += 1; };
  }, inputs);
  return { ...state, reload: load, replace: (data) => become({ data, loading: false }) };
}

/** Calls `act` at an interval of `every` milliseconds while `wanted` and the page is visible; never concurrently. */
export function usePolling(act, every, wanted) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (!wanted) return undefined;
    let timer = null;
    let over = false;
    const tick = async () => {
      if (document.visibilityState === "visible") await latest.current();
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
