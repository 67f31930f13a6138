// An outage of the service: reads that failed and are tried again, while their pages keep what they show.
import { useEffect, useState } from "./html.js";

/** The reads that wait, each as the function that tries it again. */
const waiting = new Set();
let since = null;
const listeners = new Set();

function changed() {
  since = waiting.size ? since ?? new Date().toISOString() : null;
  listeners.forEach((listener) => listener(since));
}

/** Reports a read that waits, until the returned function is called. */
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

/** The time since when the page is not updated; `null` without an outage. */
export function useOutage() {
  const [date, become] = useState(since);
  useEffect(() => {
    become(since);
    listeners.add(become);
    return () => listeners.delete(become);
  }, []);
  return date;
}
