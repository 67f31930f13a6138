// The outcome of resent deliveries: each is read again until its next attempt has ended.
import { get } from "../api.js";
import { forEachOf } from "./load.js";

/** The pauses between the readings, in milliseconds. A delivery that waits for longer, as for a reader, is not followed. */
const PAUSES_MS = [1000, 1000, 2000, 4000, 8000, 16_000, 30_000];

/** The number of the last attempt that has ended. */
export const lastAttemptNumber = ({ attempts }) => attempts.at(-1)?.attemptNumber ?? 0;

/** The first attempt after the one with this number, if it has ended. */
export const attemptAfter = ({ attempts }, number) => attempts.find(({ attemptNumber }) => attemptNumber > number);

/**
 * Calls `report` with the attempts of resent deliveries, by their identifiers, whenever some have ended. `resent` has the
 * number of the last attempt before the resend of each. Stops when `isWanted` returns `false`.
 */
export async function followResent(resent, report, isWanted) {
  const open = new Map(resent);
  for (const pause of PAUSES_MS) {
    await new Promise((proceed) => setTimeout(proceed, pause));
    const ended = new Map();
    await forEachOf(open, async ([id, number]) => {
      if (!isWanted()) return false;
      // A failed call is repeated after the next pause.
      const delivery = await get(`/webhook/delivery/${encodeURIComponent(id)}`).catch(() => null);
      const attempt = delivery && attemptAfter(delivery, number);
      if (attempt) ended.set(id, attempt);
      return true;
    });
    if (!isWanted()) return;
    for (const id of ended.keys()) open.delete(id);
    if (ended.size) await report(ended);
    if (!open.size) return;
  }
}
