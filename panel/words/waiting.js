// Why open deliveries are waiting, in words.

/** The wait of a delivery that has a next attempt, as the end of a sentence about that attempt. */
export function waits({ waitingFor }, webhook) {
  if (waitingFor === "schedule") {
    return webhook?.deliveryState === "paused" ? "or later, because the webhook is paused" : "on the retry schedule";
  }
  if (waitingFor === "rate") return `when the webhook’s limit of ${perSecond(webhook)} permits it`;
  if (waitingFor === "limit") return "when other deliveries have finished; too many are being sent at once";
  return "";
}

/** The limit of a webhook, if it still has one. */
const perSecond = (webhook) => {
  const most = webhook?.maxAttemptsPerSecond;
  return most ? `${most} ${most === 1 ? "attempt" : "attempts"} per second` : "attempts per second";
};

/** The wait of a delivery without an earlier attempt, as a headline; `undefined` if it waits for nothing in particular. */
export const HEADLINES = {
  breaker: "Waiting for the endpoint to respond: the webhook is paused",
  limit: "Waiting until other deliveries have finished",
  order: "Waiting for the previous delivery for the same subject",
  pause: "Waiting for the webhook’s pause to end",
  rate: "Waiting for its turn: the webhook’s rate is limited",
  reader: "Waiting for a program to read the webhook’s feed",
};

/**
 * Why a webhook's deliveries are waiting, after their number and "is waiting" or "are waiting". Those without a
 * reason are to be sent now.
 */
export const reasonsOf = (webhook) => ({
  sending: "to be sent: due now or under way",
  limit: "until other deliveries have finished",
  rate: `for the webhook’s limit of ${perSecond(webhook)}`,
  order: "for the previous delivery for the same subject",
  breaker: "until the endpoint responds",
  pause: "for the pause to end",
  schedule: "for the next attempt, on the retry schedule",
  reader: "for a program that reads the feed",
});
