// The question asked before a person leaves a form with unsaved changes.
import { useGuard } from "./guard.js";

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Asks while `form` differs from `beginning`; `isDone` disables the question. */
export function useUnsaved(form, beginning, isDone = false) {
  const isChanged = !isDone && !same(form, beginning);
  useGuard(isChanged && "Your changes are not saved. Leave anyway?");
}
