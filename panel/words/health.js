// A webhook's health: the same rule and wording for the list and the webhook's page.
import { LANGUAGE, counted } from "../parts/words.js";
import { WEBHOOK } from "./statuses.js";

/** The success rate in 24 hours below which an active webhook shows "Some failures". */
const STEADY = 0.95;

const percent = new Intl.NumberFormat(LANGUAGE, { style: "percent", maximumFractionDigits: 1 });
const percentFine = new Intl.NumberFormat(LANGUAGE, { style: "percent", maximumFractionDigits: 2 });

/** A success rate; 99.95 % must not be shown as 100 %. */
export const share = (rate) => (rate > 0.995 && rate < 1 ? percentFine : percent).format(rate);

/** The badge of a webhook; `day` is the summary of its last 24 hours, if it is loaded. */
export function healthOf({ deliveryState, failuresInRow, pausedBy }, day) {
  if (pausedBy === "owner") return WEBHOOK.pausedByOwner;
  if (deliveryState !== "active") return WEBHOOK[deliveryState];
  return failuresInRow || (day?.attempts > 0 && day.successRate < STEADY) ? WEBHOOK.unsteady : WEBHOOK.active;
}

/** The success rate of the last 24 hours, in a sentence. */
export const successWords = ({ attempts, successRate }) => (attempts
  ? `${share(successRate)} of ${counted(attempts, "attempt", "attempts")} succeeded in the last 24 hours.`
  : "No attempts in the last 24 hours.");
