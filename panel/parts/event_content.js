// The content of a delivery's event, and the dialog that erases it.
import { html, useState } from "./html.js";
import { remove } from "../api.js";
import { Action } from "./action.js";
import { Card } from "./card.js";
import { Dialog } from "./dialog.js";
import { Text } from "./json.js";
import { Problem } from "./problem.js";
import { Time } from "./time.js";
import { say } from "./notices.js";
import { useAction } from "./load.js";

/** `erased` is called after the content was erased. */
export function EventContent({ delivery, erased }) {
  const [asks, ask] = useState(false);
  if (delivery.erasedDate) {
    return html`
      <${Card} title="Event">
        <p>Content erased on <${Time} date=${delivery.erasedDate} as="both" />. The time, address and outcome of
          each attempt are kept.</p>
      <//>`;
  }
  return html`
    <${Card} title="Event">
      <${Text} text=${delivery.body} what="the event" />
      <p><${Action} kind="danger" scope="integrations.remove" onClick=${() => ask(true)}>Erase content…<//></p>
      ${asks && html`<${Erasing} event=${delivery.event.id} close=${() => ask(false)} erased=${erased} />`}
    <//>`;
}

function Erasing({ event, close, erased }) {
  const erasing = useAction(async () => {
    const { message } = await remove(`/webhook/event/${encodeURIComponent(event)}/content`);
    say(message);
    close();
    await erased();
  });
  return html`
    <${Dialog} title="Erase this event’s content?" close=${close}>
      <p>The event’s data and subject and the endpoints’ responses are erased, in its deliveries to all webhooks. This
        cannot be undone.</p>
      <p>The event’s open deliveries are cancelled, and none of its deliveries can be resent. The time, address and outcome
        of each attempt stay visible.</p>
      <${Problem} refusal=${erasing.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="danger" scope="integrations.remove" busy=${erasing.busy} onClick=${() => erasing.run()}>
          Erase content
        <//></div>
    <//>`;
}
