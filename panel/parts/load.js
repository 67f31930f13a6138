// What a page reads from the API: what it read last, whether it reads, and why it could not.
import { useCallback, useEffect, useRef, useState } from "./html.js";

/** Reads when `inputs` change. What was read before stays meanwhile if `keep` says so. */
export function useLoad(read, inputs, { keep = false } = {}) {
  const [state, become] = useState({ loading: true });
  const turn = useRef(0);
  const latest = useRef(read);
  latest.current = read;

  const load = useCallback(async () => {
    const mine = ++turn.current;
    become((before) => ({ ...before, loading: true }));
    try {
      const data = await latest.current();
      if (mine === turn.current) become({ data, loading: false });
    } catch (error) {
      if (mine === turn.current) become((before) => ({ data: before.data, error, loading: false }));
    }
  }, []);

  useEffect(() => {
    if (!keep) become({ loading: true });
    load();
    return () => { turn.current += 1; };
  }, inputs);
  return { ...state, reload: load, replace: (data) => become({ data, loading: false }) };
}

/** Does something every so many milliseconds while it is wanted and the page is looked at; never twice at once. */
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

/** A change that a person asked for: whether it is under way, and why it was refused. */
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
  /** A member of what is asked for was changed: what was wrong with it is not said any more. */
  const forgive = (field) => become((before) =>
    (before.refusal?.without ? { ...before, refusal: before.refusal.without(field) } : before));
  return { ...state, run, forgive };
}
