// The cursor in a list's address, which may be older than the keys that seal cursors.
import { useEffect } from "./html.js";
import { address, go } from "../address.js";

/** Restarts the list at `path` if its cursor has expired, and returns whether it has. */
export function useExpiredCursor(path, query, error) {
  const isExpired = Boolean(query.cursor) && error?.kind === "invalid-cursor";
  useEffect(() => {
    if (isExpired) go(address(path, { ...query, cursor: "" }), { replace: true });
  }, [isExpired]);
  return isExpired;
}
