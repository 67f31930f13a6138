// A form that was changed and not sent: before it is left, the person is asked.
import { useEffect } from "./html.js";
import { guard } from "../address.js";

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Asks while `form` is another than it was in the beginning; `isDone` once there is nothing to lose. */
export function useUnsaved(form, beginning, isDone = false) {
  const isChanged = !isDone && !same(form, beginning);
  useEffect(() => {
    if (!isChanged) return undefined;
    const end = guard("What you typed here is not saved yet. Leave all the same?");
    // The browser asks in words of its own, when the tab is closed or read again.
    const ask = (event) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => {
      end();
      removeEventListener("beforeunload", ask);
    };
  }, [isChanged]);
}
