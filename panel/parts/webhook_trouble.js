// A webhook's problem, in a sentence.
import { html } from "./html.js";
import { Countdown, Time } from "./time.js";
import { counted } from "./words.js";
import { resultInSentence } from "../words/results.js";

const BY_A_PERSON = "A person or a program disabled it, not the service.";

const lastFailed = (count) => (count === 1 ? "The last attempt failed" : `The last ${counted(count, "attempt", "attempts")} failed`);

export function Trouble({ webhook: { deliveryState, failuresInRow, failingSince, lastErrorCode, lastHttpStatus,
  pausedBy, pausedSince, pausedUntil, disabledReason, disabledDate } }) {
  if (pausedBy === "owner") {
    return html`<p class="trouble">Paused <${Time} date=${pausedSince} as="distance" />, ${pausedUntil
      ? html`until <strong><${Time} date=${pausedUntil} as="both" /></strong>` : "until someone resumes it"}.</p>`;
  }
  if (deliveryState === "disabled") {
    return html`<p class="trouble">${disabledReason ?? BY_A_PERSON} ${disabledDate &&
      html`Disabled <${Time} date=${disabledDate} as="distance" />.`}</p>`;
  }
  if (!failuresInRow) return null;
  return html`
    <p class="trouble">${lastFailed(failuresInRow)}, ${failuresInRow === 1 ? "" : "the first "}<${Time}
      date=${failingSince} as="distance" />. Last result: <strong>
      ${resultInSentence({ httpStatus: lastHttpStatus, errorCode: lastErrorCode })}</strong>.
      ${pausedUntil && html` Deliveries are on hold until the endpoint responds. Next check: <strong>
        <${Countdown} before="in " until=${pausedUntil} over="now" /></strong>.`}</p>`;
}
