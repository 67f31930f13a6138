// The choices for how long a replaced secret remains valid, in seconds.
export const OVERLAPS = [["86400", "24 hours"], ["3600", "1 hour"], ["604800", "7 days"],
  ["0", "Do not keep it"]];
