// The trouble of a webhook, in a sentence.
import { html } from "./html.js";
import { Countdown, Time } from "./time.js";
import { counted } from "./words.js";
import { shortResult } from "../words/results.js";

export function Trouble({ webhook: { deliveryState, failuresInRow, failingSince, lastError, lastHttpStatus, pausedUntil,
  disabledReason, disabledDate } }) {
  if (deliveryState === "disabled") {
    return html`<p class="trouble">${disabledReason ?? "It was disabled in this panel or through the API, not by the service."} ${disabledDate &&
      html`Since <${Time} date=${disabledDate} as="distance" />.`}</p>`;
  }
  if (!failuresInRow) return null;
  return html`
    <p class="trouble">${counted(failuresInRow, "attempt has", "attempts have")} failed in a row, since <${Time}
      date=${failingSince} as="distance" />: <strong>${shortResult({ httpStatus: lastHttpStatus, error: lastError })}
      </strong>.
      ${pausedUntil && html` Deliveries wait; one attempt is sent <strong>
        <${Countdown} before="in " until=${pausedUntil} over="now" /></strong>.`}</p>`;
}
