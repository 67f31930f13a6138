// A service outage: reads that failed are retried, while their pages keep their content.
import { useEffect, useState } from "./html.js";

/** The waiting reads, each as the function that repeats it. */
const waiting = new Set();
let since = null;
const listeners = new Set();

function changed() {
  since = waiting.size ? since ?? new Date().toISOString() : null;
  listeners.forEach((listener) => listener(since));
}

/** Reports a waiting read, until the returned function is called. */
export function awaits(read) {
  waiting.add(read);
  changed();
  return () => {
    waiting.delete(read);
    changed();
  };
}

export const isAway = () => waiting.size > 0;

/** Tries all waiting reads again. */
export const retryAll = () => waiting.forEach((read) => read());

/** The time since which the page has not been updated; `null` without an outage. */
export function useOutage() {
  const [date, become] = useState(since);
  useEffect(() => {
    become(since);
    listeners.add(become);
    return () => listeners.delete(become);
  }, []);
  return date;
}
