// Times: in the browser's time zone, which the frame of the page names; in UTC on hover; or relative to now.
import { html, useEffect, useState } from "./html.js";
import { LANGUAGE } from "./words.js";

const day = { day: "numeric", month: "short" };
const clock = { hour: "2-digit", minute: "2-digit" };
const withSeconds = { ...clock, second: "2-digit" };
const relative = new Intl.RelativeTimeFormat(LANGUAGE, { numeric: "auto", style: "long" });
const UNITS = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** The number of seconds within which a time is "just now": the clocks of browser and service differ a little. */
const JUST_NOW = 5;

/** The time zone of all times on a page: "Europe/Berlin, UTC+1". */
export function zone() {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const parts = new Intl.DateTimeFormat(LANGUAGE, { timeZoneName: "shortOffset" }).formatToParts(new Date());
  const offset = parts.find(({ type }) => type === "timeZoneName")?.value.replace("GMT", "UTC") ?? "";
  return timeZone === "UTC" ? "UTC" : `${timeZone}, ${offset}`;
}

/** A time in full, in the browser's time zone. */
export function inZone(date, { seconds = true } = {}) {
  const time = new Date(date);
  const year = time.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return new Intl.DateTimeFormat(LANGUAGE, { ...day, ...year, ...(seconds ? withSeconds : clock) }).format(time);
}

export const inUtc = (date) => `${new Date(date).toISOString().replace("T", " ").replace("Z", "")} UTC`;

/** Seconds in words, in the two largest units, or in the largest alone: "2 h 5 min". */
export function span(seconds, { brief = false } = {}) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  const parts = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = parts.findIndex(([, size]) => seconds >= size);
  const [[large, size], small] = [parts[first], parts[first + 1]];
  const rest = small && !brief ? Math.floor((seconds % size) / small[1]) : 0;
  return `${Math.floor(seconds / size)} ${large}${rest ? ` ${rest} ${small[0]}` : ""}`;
}

export const isOver = (date) => Boolean(date) && new Date(date) <= new Date();

/** A time relative to now: "2 hours ago". */
export function fromNow(date) {
  const seconds = (new Date(date) - Date.now()) / 1000;
  if (Math.abs(seconds) < JUST_NOW) return "just now";
  const [unit, size] = UNITS.find(([, least]) => Math.abs(seconds) >= least) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

const clocks = new Map();

/** The clock for this interval. One timer updates all times on a page together. */
function clockEvery(every) {
  if (!clocks.has(every)) clocks.set(every, { listeners: new Set(), timer: null });
  return clocks.get(every);
}

/** The current time, updated every `every` milliseconds. */
export function useNow(every = 1000) {
  const [now, tick] = useState(Date.now);
  useEffect(() => {
    const clock = clockEvery(every);
    clock.listeners.add(tick);
    clock.timer ??= setInterval(() => clock.listeners.forEach((listener) => listener(Date.now())), every);
    return () => {
      clock.listeners.delete(tick);
      if (clock.listeners.size) return;
      clearInterval(clock.timer);
      clock.timer = null;
    };
  }, [every]);
  return now;
}

/** A time, without its day if that is today. */
export const ofToday = (date) => (new Date(date).toDateString() === new Date().toDateString()
  ? new Intl.DateTimeFormat(LANGUAGE, clock).format(new Date(date)) : inZone(date, { seconds: false }));

/** A time to the second, without its day if that is today. */
export const clockOf = (date) => (new Date(date).toDateString() === new Date().toDateString()
  ? new Intl.DateTimeFormat(LANGUAGE, withSeconds).format(new Date(date)) : inZone(date));

/** A day without a time, such as "2026-11-23". */
export function dayOf(date) {
  const [year, month, number] = date.slice(0, 10).split("-").map(Number);
  const style = year === new Date().getFullYear() ? day : { ...day, year: "numeric" };
  return new Intl.DateTimeFormat(LANGUAGE, style).format(new Date(year, month - 1, number));
}

/** A time in the format `as`: "full", "clock" (without today's date), "distance" (relative to now), or "both". */
export function Time({ date, as = "full", seconds = true }) {
  if (!date) return null;
  if (as === "distance" || as === "both") return html`<${Moving} date=${date} as=${as} />`;
  const words = as === "clock" ? ofToday(date) : inZone(date, { seconds });
  return html`<time dateTime=${date} title=${inUtc(date)}>${words}</time>`;
}

/** A time relative to now, updated every 5 seconds during its first minute, then every 30 seconds. */
function Moving({ date, as }) {
  const isNew = Math.abs(new Date(date) - Date.now()) < 60_000;
  useNow(isNew ? 5000 : 30_000);
  const words = fromNow(date);
  const full = inZone(date);
  return html`<time dateTime=${date} title="${full}\n${inUtc(date)}">${as === "both" ? `${full} (${words})` : words}</time>`;
}

/** A running countdown to a time. */
export function Countdown({ until, before = "", over = "now", brief }) {
  const now = useNow();
  const left = Math.ceil((new Date(until) - now) / 1000);
  return html`<time dateTime=${until} title=${inUtc(until)} class="countdown">${left > 0 ? before + span(left, { brief }) : over}
    </time>`;
}
