// The attempts of a delivery, one at a time, with request and response.
import { html, useState } from "./html.js";
import { Icon } from "./icon.js";
import { Text } from "./json.js";
import { Tabs } from "./tabs.js";
import { Time, span } from "./time.js";
import { Words } from "./words.js";
import { causeOf } from "../words/causes.js";
import { headersOf } from "../words/requests.js";
import { result, succeeded } from "../words/results.js";

export function Attempts({ delivery, chosen, choose }) {
  const tabs = delivery.attempts.toReversed().map((attempt) => ({
    id: attempt.attemptNumber,
    label: html`<${AttemptLabel} attempt=${attempt} />`,
    content: () => html`<${Attempt} key=${attempt.attemptNumber} ...${{ delivery, attempt }} />`,
  }));
  return html`<${Tabs} label="Attempts, the latest first" tabs=${tabs} chosen=${chosen} choose=${choose} upright />`;
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
    { id: "response", label: "Response", content: () => html`<${Response} attempt=${attempt} />` },
    { id: "request", label: "Request", content: () => html`<${Request} ...${{ delivery, attempt }} />` },
  ];
  return html`<${Tabs} label="Attempt ${attempt.attemptNumber}" tabs=${tabs} chosen=${side} choose=${turn} />`;
}

function Response({ attempt }) {
  const cause = causeOf(attempt);
  return html`
    <dl class="facts in-line">
      <div><dt>Result</dt><dd>${result(attempt)}</dd></div>
      <div><dt>Duration</dt><dd>${span(attempt.durationMs / 1000)}</dd></div>
      <div><dt>Began</dt><dd><${Time} date=${attempt.attemptDate} /></dd></div>
    </dl>
    ${attempt.error && html`<p class="outside">${attempt.error}</p>`}
    ${cause && html`<p><${Words} text=${cause.meaning} /></p>`}
    ${attempt.responseBody
      ? html`<h3>Body <span class="fine">the first 4 KB, as the endpoint sent them</span></h3>
        <${Text} text=${attempt.responseBody} what="the body of the response" />`
      : html`<p class="faint">${attempt.httpStatus ? "The response had no body." : "There was no response."}</p>`}`;
}

function Request({ delivery, attempt }) {
  if (!attempt.requestHeaders) {
    const why = attempt.error?.startsWith("blocked") ? "No request was sent." : "The request of this attempt is not stored.";
    return html`<p class="faint">${why}</p>`;
  }
  return html`
    <p class="request-line"><strong>POST</strong> <code>${attempt.url}</code></p>
    <table class="headers"><caption class="unseen">Headers</caption>
      <tbody>${headersOf(delivery, attempt).map(([name, value]) => html`<tr><th scope="row">${name}</th>
        ${value === null ? html`<td class="faint">not stored</td>` : html`<td>${value}</td>`}</tr>`)}</tbody></table>
    <p class="faint">The body is the event as shown below, with the same bytes at every attempt.</p>`;
}
