// Something that would be lost if the page were left: before that, the person is asked.
import { useLayoutEffect } from "./html.js";
import { guard } from "../address.js";

/** Asks this before the page is left; nothing, while there is nothing to lose. */
export function useGuard(question) {
  useLayoutEffect(() => {
    if (!question) return undefined;
    const end = guard(question);
    // The browser asks in words of its own, when the tab is closed or read again.
    const ask = (event) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => {
      end();
      removeEventListener("beforeunload", ask);
    };
  }, [question]);
}
