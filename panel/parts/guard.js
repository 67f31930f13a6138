// The question asked before a person leaves a page whose content would be lost.
import { useLayoutEffect } from "./html.js";
import { guard } from "../address.js";

/** Asks this question before the page is left; a falsy question disables it. */
export function useGuard(question) {
  useLayoutEffect(() => {
    if (!question) return undefined;
    const end = guard(question);
    // When the tab is closed or reloaded, the browser asks its own question.
    const ask = (event) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => {
      end();
      removeEventListener("beforeunload", ask);
    };
  }, [question]);
}
