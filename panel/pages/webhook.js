// A webhook: how its endpoint does, and what can be done with it.
import { html, useState } from "../parts/html.js";
import { get, patch, post } from "../api.js";
import { address, go } from "../address.js";
import { Action, LinkButton } from "../parts/action.js";
import { Badge } from "../parts/badge.js";
import { DeliveryTable } from "../parts/delivery_table.js";
import { Chart } from "../parts/chart.js";
import { Time } from "../parts/time.js";
import { Icon } from "../parts/icon.js";
import { Identifier } from "../parts/copy.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Recovery } from "../parts/recovery.js";
import { Removal } from "../parts/webhook_removal.js";
import { Rotation } from "../parts/webhook_rotation.js";
import { Trouble } from "../parts/webhook_trouble.js";
import { Waiting } from "../parts/empty.js";
import { Words } from "../parts/words.js";
import { labelOf, useTypes } from "../parts/known.js";
import { say } from "../parts/notices.js";
import { useAction, useLoad, usePolling } from "../parts/load.js";
import { causeNamed, causeOf } from "../words/causes.js";
import { WEBHOOK } from "../words/statuses.js";

async function read(id) {
  const path = `/webhook/${encodeURIComponent(id)}`;
  const [webhook, stats, latest] = await Promise.all([
    get(path),
    get(`${path}/stats`),
    get("/webhook/delivery/list", { webhookIdentifier: id, limit: 5 }),
  ]);
  return { webhook, stats, latest: latest.items };
}

export default function Webhook({ parts: [, id] }) {
  const loaded = useLoad(() => read(id), [id]);
  usePolling(loaded.reload, 5000, Boolean(loaded.data) && !loaded.error);
  const above = html`<a href="/panel/webhooks">Webhooks</a>`;
  if (!loaded.data) {
    return html`
      <${Page} title="Webhook" above=${above}>
        ${loaded.error ? html`<${Problem} refusal=${loaded.error} retry=${loaded.reload} />`
          : html`<${Waiting} what="The webhook is read" />`}
      <//>`;
  }
  return html`<${Shown} ...${loaded.data} above=${above} error=${loaded.error} reload=${loaded.reload} />`;
}

function Shown({ webhook, stats, latest, above, error, reload }) {
  const path = `/webhook/${encodeURIComponent(webhook.id)}`;
  const types = useTypes();
  const [open, show] = useState("");
  const close = () => show("");
  const test = useAction(async () => {
    const { deliveryIdentifier } = await post(`${path}/test`);
    go(`/panel/deliveries/${deliveryIdentifier}`);
  });
  const enable = useAction(async (enabled) => {
    await patch(path, { enabled });
    say(enabled ? "Enabled: events are sent to it again." : "Disabled: nothing is sent to it.");
    close();
    await reload();
  });
  const resume = useAction(async () => {
    await post(`${path}/resume`);
    say("The pause is over. What waited is being sent.");
    await reload();
  });
  const { tone, icon, word } = WEBHOOK[webhook.deliveryState];
  const beside = html`
    <${Action} kind="primary" icon="resend" scope="integrations.write" busy=${test.busy} onClick=${() => test.run()}>
      Send a test event<//>
    <${LinkButton} to="/panel/webhooks/${webhook.id}/edit">Edit<//>`;
  return html`
    <${Page} title=${webhook.name} above=${above} beside=${beside}
      lead=${html`<${Badge} tone=${tone} icon=${icon}>${word}<//> <code class="break">${webhook.eventUrl}</code>`}>
      <${Problem} refusal=${test.refusal ?? enable.refusal ?? resume.refusal ?? error} />
      <${Health} webhook=${webhook} resume=${resume} enable=${enable} recover=${() => show("recover")} />
      <section class="card" aria-labelledby="figures"><h2 id="figures">How it does</h2><${Chart} stats=${stats} />
        </section>
      <section class="group" aria-labelledby="latest"><h2 id="latest">Latest deliveries</h2>
        ${latest.length > 0 ? html`<${DeliveryTable} items=${latest} types=${types} webhooks=${[webhook]} />`
          : html`<p class="faint">None yet: send a test event.</p>`}
        <p><a href=${address("/deliveries", { webhook: webhook.id })}>All its deliveries
          </a> · <a href=${address("/deliveries", { webhook: webhook.id, status: "failed" })}>those that failed
          </a> · <a href=${address("/deliveries", { webhook: webhook.id, status: "pending,retrying" })}>those that are
          open</a></p></section>
      <section class="card" aria-labelledby="wants"><h2 id="wants">Events</h2>
        ${webhook.eventList.length === 0 ? html`<p>Every type, those of later included.</p>` : html`<ul class="tags">
          ${webhook.eventList.map((key) => html`<li title=${key}>${labelOf(types, key)}</li>`)}</ul>`}</section>
      <section class="card" aria-labelledby="signing"><h2 id="signing">Signing secret</h2>
        <p>${webhook.previousSecretExpiresDate
          ? html`Two secrets sign at present: the new one, and the one before until <${Time}
            date=${webhook.previousSecretExpiresDate} as="both" />.`
          : "One secret signs what is sent. Replace it when somebody may have seen it, or as often as your rules say."}
            </p>
        <${Action} icon="key" scope="integrations.write" onClick=${() => show("rotate")}>Replace the secret<//>
          </section>
      <section class="card" aria-labelledby="facts"><h2 id="facts">Facts</h2>
        <dl class="facts">
          <div><dt>Webhook</dt><dd><${Identifier} id=${webhook.id} what="the webhook’s identifier" /></dd></div>
          <div><dt>Headers of your own</dt><dd>${Object.keys(webhook.headers).join(", ") || "None"}</dd></div>
          <div><dt>Created</dt><dd><${Time} date=${webhook.createdDate} as="both" /></dd></div>
          <div><dt>Last changed</dt><dd><${Time} date=${webhook.lastUpdate} as="both" />, version ${webhook.version}
            </dd></div>
        </dl></section>
      <section class="card" aria-labelledby="end"><h2 id="end">Stop</h2>
        <div class="choice">
          ${webhook.enabled
            ? html`<p>Disabled, it is sent nothing, and what is published meanwhile makes no delivery to it. It can be
              enabled again.</p><${Action} scope="integrations.write" busy=${enable.busy}
              onClick=${() => enable.run(false)}>Disable<//>`
            : html`<p>It is disabled. Enabled, it is sent what is published from then on.</p>
              <${Action} scope="integrations.write" busy=${enable.busy} onClick=${() => enable.run(true)}>Enable<//>`}
        </div>
        <div class="choice"><p>Removed, it is gone for good. Its deliveries can be read for as long as they are kept,
          and not be sent again.</p><${Action} kind="danger" scope="integrations.remove"
          onClick=${() => show("remove")}>Remove …<//></div></section>
      ${open === "rotate" && html`<${Rotation} webhook=${webhook} close=${() => { close(); reload(); }} />`}
      ${open === "remove" && html`<${Removal} webhook=${webhook} close=${close} />`}
      ${open === "recover" && html`<${Recovery} webhook=${webhook} since=${webhook.failingSince ?? webhook.createdDate}
        close=${close} done=${reload} />`}
    <//>`;
}

/** What is wrong, why, and what ends it; nothing of a webhook that is well. */
function Health({ webhook, resume, enable, recover }) {
  const { deliveryState, lastHttpStatus, lastError } = webhook;
  if (deliveryState === "active" && !webhook.failuresInRow) return null;
  const whole = deliveryState === "disabled" ? causeNamed("disabled")
    : causeOf({ httpStatus: lastHttpStatus, error: lastError });
  const { tone, icon } = WEBHOOK[deliveryState];
  return html`
    <section class="verdict ${tone === "good" ? "warn" : tone}" aria-label="What is wrong">
      <span class="medal"><${Icon} name=${tone === "good" ? "warning" : icon} /></span>
      <div>
        <h2>${{ active: "The last attempts failed", failing: "The endpoint fails",
          paused: "Paused: the endpoint does not answer", disabled: "Disabled" }[deliveryState]}</h2>
        <${Trouble} webhook=${webhook} />
        ${whole && html`<dl class="why"><div><dt>Why</dt><dd><${Words} text=${whole.meaning} /></dd></div><div>
          <dt>What to do</dt><dd><${Words} text=${whole.remedy} /></dd></div></dl>`}
        <div class="form-actions">
          ${deliveryState === "paused" && html`<${Action} scope="integrations.write" busy=${resume.busy}
            onClick=${() => resume.run()}>End the pause now<//>`}
          ${deliveryState === "disabled" && html`<${Action} kind="primary" scope="integrations.write"
            busy=${enable.busy} onClick=${() => enable.run(true)}>Enable<//>`}
          <${Action} icon="retrying" scope="integrations.write" onClick=${recover}>Recover what failed<//>
        </div>
      </div>
    </section>`;
}
