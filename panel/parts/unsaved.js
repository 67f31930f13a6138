// A form that was changed and not sent: before it is left, the person is asked.
import { useGuard } from "./guard.js";

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Asks while `form` is another than it was in the beginning; `isDone` once there is nothing to lose. */
export function useUnsaved(form, beginning, isDone = false) {
  const isChanged = !isDone && !same(form, beginning);
  useGuard(isChanged && "What you typed here is not saved yet. Leave all the same?");
}
