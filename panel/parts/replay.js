// The dialog that replays events to a webhook: the person chooses a range and types, and first sees the count from a
// dry run. A later dry run of the same events shows how many are left.
import { html, useState } from "./html.js";
import { post } from "../api.js";
import { Action } from "./action.js";
import { Dialog } from "./dialog.js";
import { EventPicker } from "./event_picker.js";
import { Problem } from "./problem.js";
import { Range, daysBack, rangeOf } from "./recovery_range.js";
import { Waiting } from "./empty.js";
import { useAction } from "./load.js";

const events = ({ count, countIsExact }) =>
  `${countIsExact ? "" : "At least "}${count.toLocaleString("en")} ${count === 1 && countIsExact ? "event" : "events"}`;

/** The result of a dry run, in a sentence. */
const counted = (found) => found.message ?? `${events(found)} in this range ${found.count === 1 && found.countIsExact
  ? "matches the webhook and has" : "match the webhook and have"} no delivery to it.`;

export function Replay({ webhook, close, done }) {
  const [choices] = useState(daysBack);
  const [chosen, become] = useState({ key: "week" });
  const [types, pick] = useState(null);
  const [answer, note] = useState({});
  const range = rangeOf(choices, chosen);
  const selection = { createdFrom: range.since, createdUntil: range.until, types: types ?? [] };
  const isReady = range.since && types?.length !== 0;
  // An answer applies only to the selection that it was requested for.
  const asked = JSON.stringify(selection);
  const { found, begun } = answer.asked === asked && isReady ? answer : {};
  const request = (dryRun) => post(`/webhook/${encodeURIComponent(webhook.id)}/replay`, { ...selection, dryRun });
  const count = useAction(async () => note({ asked, begun, found: await request(true) }));
  const replay = useAction(async () => {
    note({ asked, begun: await request(false) });
    done?.();
  });
  const hasEvents = !begun && found && (found.count > 0 || !found.countIsExact);
  return html`
    <${Dialog} title="Replay events" close=${close}>
      <p>Events in this range that match <strong><bdi>${webhook.name}</bdi></strong> as it is now, and have no delivery
        to it, are delivered in the background, oldest first. Use it for a new webhook, or after you enabled or changed
        one.</p>
      ${webhook.order === "subject" && html`
        <p class="note">Replayed deliveries do not wait for others with the same subject.</p>`}
      <${Range} ranges=${choices} chosen=${chosen} choose=${become} />
      <${EventPicker} chosen=${types} change=${pick} all="That the webhook subscribes to." />
      ${count.busy && html`<${Waiting} what="Counting events" lines="1" />`}
      <div role="status">${begun && html`<p>${begun.message ??
        `${events(begun)} ${begun.count === 1 && begun.countIsExact ? "is" : "are"} being delivered.`}</p>`}
        ${found && html`<p>${counted(found)}</p>`}</div>
      <${Problem} refusal=${count.refusal ?? replay.refusal} />
      <div class="dialog-actions">
        <button type="button" onClick=${close}>${begun ? "Close" : "Cancel"}</button>
        ${(!found || begun) && isReady && html`
          <${Action} kind="primary" scope="integrations.write" busy=${count.busy} onClick=${() => count.run()}>
            ${begun ? "Count remaining events" : "Count events"}<//>`}
        ${hasEvents && html`
          <${Action} kind="primary" scope="integrations.write" busy=${replay.busy} onClick=${() => replay.run()}>
            Replay events<//>`}
      </div>
    <//>`;
}
