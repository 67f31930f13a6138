// A delivery's attempts, one at a time, with request and response.
import { html, useState } from "./html.js";
import { Icon } from "./icon.js";
import { Text } from "./json.js";
import { Tabs } from "./tabs.js";
import { Time, span } from "./time.js";
import { Words } from "./words.js";
import { causeOf } from "../words/causes.js";
import { headersOf } from "../words/requests.js";
import { isInterrupted, result, succeeded } from "../words/results.js";

export function Attempts({ delivery, chosen, choose }) {
  const tabs = delivery.attempts.toReversed().map((attempt) => ({
    id: attempt.attemptNumber,
    label: html`<${AttemptLabel} attempt=${attempt} />`,
    content: () => html`<${Attempt} key=${attempt.attemptNumber} ...${{ delivery, attempt }} />`,
  }));
  return html`<${Tabs} label="Attempts, newest first" tabs=${tabs} chosen=${chosen} choose=${choose} upright />`;
}

const AttemptLabel = ({ attempt }) => html`
  <span class="attempt-label ${succeeded(attempt) ? "good" : "bad"}">
    <${Icon} name=${succeeded(attempt) ? "delivered" : "failed"} />
    <span><strong>Attempt ${attempt.attemptNumber}</strong> <span class="result">${result(attempt)}</span><small>
      <${Time} date=${attempt.attemptDate} /></small></span>
  </span>`;

function Attempt({ delivery, attempt }) {
  const [side, turn] = useState("response");
  const tabs = [
    { id: "response", label: "Response", content: () => html`<${Response} ...${{ delivery, attempt }} />` },
    { id: "request", label: "Request", content: () => html`<${Request} ...${{ delivery, attempt }} />` },
  ];
  return html`<${Tabs} label="Attempt ${attempt.attemptNumber}" tabs=${tabs} chosen=${side} choose=${turn} />`;
}

function Response({ delivery, attempt }) {
  const cause = causeOf(attempt);
  const without = delivery.erasedDate ? "If the response had a body, it was erased with the event."
    : "The response had no body.";
  return html`
    <dl class="facts in-line">
      <div><dt>Result</dt><dd>${result(attempt)}</dd></div>
      ${!isInterrupted(attempt) && html`<div><dt>Duration</dt><dd>${span(attempt.durationMs / 1000)}</dd></div>`}
      ${attempt.retryAfterSeconds !== undefined && html`<div><dt>Retry-After</dt><dd>${span(attempt.retryAfterSeconds)}</dd></div>`}
      ${attempt.location && html`<div><dt>Location</dt><dd class="outside">${attempt.location}</dd></div>`}
      <div><dt>Started</dt><dd><${Time} date=${attempt.attemptDate} /></dd></div>
    </dl>
    ${attempt.error && html`<p class="outside">${attempt.error}</p>`}
    ${cause && html`<p><${Words} text=${cause.meaning} /></p>`}
    ${attempt.responseBody
      ? html`<h3>Body <span class="fine">as the endpoint sent it, up to 4 KB</span></h3>
        <${Text} text=${attempt.responseBody} what="the response body" />`
      : html`<p class="faint">${attempt.httpStatus ? without : attempt.confirmed
        ? "An event read from a feed has no response body."
        : isInterrupted(attempt) ? "The response was not recorded." : "There was no response."}</p>`}`;
}

function Request({ delivery, attempt }) {
  if (!attempt.requestHeaders) {
    const isBlocked = attempt.errorCode === "blocked";
    if (isInterrupted(attempt)) return html`<p class="faint">The endpoint may have received the request, which was not recorded.</p>`;
    if (!delivery.url) return html`<p class="faint">A program read the delivery from its webhook’s feed.</p>`;
    return html`<p class="faint">${isBlocked ? "No request was sent: the address is not allowed."
      : "The address and headers of this attempt are not stored."}</p>`;
  }
  return html`
    <p class="request-line"><strong>POST</strong> <code>${attempt.url}</code></p>
    <table class="headers"><caption class="unseen">Headers</caption>
      <tbody>${headersOf(delivery, attempt).map(([name, value]) => html`<tr><th scope="row">${name}</th>
        ${value === null ? html`<td class="faint">not stored</td>` : html`<td>${value}</td>`}</tr>`)}</tbody></table>
    <p class="faint">The attempt used this address and these headers. Header values are not stored; those shown
      are derived from the delivery. ${attempt.payload === "thin" ? "Its body was the event without its data."
      : "Its body was the event below, byte for byte the same in each attempt."}</p>`;
}
