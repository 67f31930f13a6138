// Times: in the reader's zone, in UTC on hover, or relative to now.
import { html, useEffect, useState } from "./html.js";

const day = { day: "numeric", month: "short" };
const clock = { hour: "2-digit", minute: "2-digit" };
const withSeconds = { ...clock, second: "2-digit" };
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });
const UNITS = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** A time in full, in the reader's zone. */
export function inZone(date, { seconds = true } = {}) {
  const time = new Date(date);
  const year = time.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return new Intl.DateTimeFormat(undefined, { ...day, ...year, ...(seconds ? withSeconds : clock) }).format(time);
}

export const inUtc = (date) => `${new Date(date).toISOString().replace("T", " ").replace("Z", "")} UTC`;

/** Seconds in words, the two largest units: "2 h 5 min". */
export function span(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  const parts = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = parts.findIndex(([, size]) => seconds >= size);
  const [[large, size], small] = [parts[first], parts[first + 1]];
  const rest = small ? Math.floor((seconds % size) / small[1]) : 0;
  return `${Math.floor(seconds / size)} ${large}${rest ? ` ${rest} ${small[0]}` : ""}`;
}

export const isOver = (date) => Boolean(date) && new Date(date) <= new Date();

export function fromNow(date, now = Date.now()) {
  const seconds = (new Date(date) - now) / 1000;
  const [unit, size] = UNITS.find(([, least]) => Math.abs(seconds) >= least) ?? ["second", 1];
  return relative.format(Math.round(seconds / size), unit);
}

/** The current time, updated every `every` milliseconds. */
export function useNow(every = 1000) {
  const [now, tick] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => tick(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** A time, without its day if that is today. */
const ofToday = (date) => (new Date(date).toDateString() === new Date().toDateString()
  ? new Intl.DateTimeFormat(undefined, clock).format(new Date(date)) : inZone(date, { seconds: false }));

/** A time to the second, without its day if that is today. */
export const clockOf = (date) => (new Date(date).toDateString() === new Date().toDateString()
  ? new Intl.DateTimeFormat(undefined, withSeconds).format(new Date(date)) : inZone(date));

/** A day without a time, such as "2026-11-23". */
export function dayOf(date) {
  const [year, month, number] = date.slice(0, 10).split("-").map(Number);
  const style = year === new Date().getFullYear() ? day : { ...day, year: "numeric" };
  return new Intl.DateTimeFormat(undefined, style).format(new Date(year, month - 1, number));
}

/** A time in the format `as`: "full", "clock" (without today's date), "distance" (relative to now), or "both". */
export function Time({ date, as = "full", seconds = true }) {
  if (!date) return null;
  const full = inZone(date, { seconds });
  const words = { full, clock: ofToday(date), distance: fromNow(date), both: `${full} (${fromNow(date)})` }[as];
  return html`<time dateTime=${date} title=${as === "distance" ? `${full}\n${inUtc(date)}` : inUtc(date)}>${words}
    </time>`;
}

/** A running countdown to a time. */
export function Countdown({ until, before = "", over = "now" }) {
  const now = useNow();
  const left = Math.ceil((new Date(until) - now) / 1000);
  return html`<time dateTime=${until} title=${inUtc(until)} class="countdown">${left > 0 ? before + span(left) : over}
    </time>`;
}
