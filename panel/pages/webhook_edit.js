// The page that edits a webhook. If someone else has changed it in the meantime, the person chooses between the two
// versions.
import { html, useState } from "../parts/html.js";
import { patch } from "../api.js";
import { go } from "../address.js";
import { Action } from "../parts/action.js";
import { Conflict, merged } from "../parts/conflict.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { Waiting } from "../parts/empty.js";
import { webhookOf } from "../parts/event_filter.js";
import { FIELDS, WebhookFields, finished, typed } from "../parts/webhook_form.js";
import { say } from "../parts/notices.js";
import { useFaultFocus } from "../parts/focus.js";
import { useUnsaved } from "../parts/unsaved.js";
import { useAction, useLoad } from "../parts/load.js";

export default function EditWebhook({ parts: [, id] }) {
  const loaded = useLoad(() => webhookOf(id), [id]);
  if (!loaded.data) {
    return html`<${Page} title="Edit webhook">
      ${loaded.error ? html`<${Problem} refusal=${loaded.error} retry=${loaded.reload} />`
      : html`<${Waiting} what="Loading webhook" />`}<//>`;
  }
  return html`<${Editor} webhook=${loaded.data} />`;
}

function Editor({ webhook }) {
  const path = `/webhook/${encodeURIComponent(webhook.id)}`;
  const [base, rebase] = useState(webhook);
  const [form, change] = useState(typed(webhook));
  const [theirs, oppose] = useState(null);
  useUnsaved(form, typed(base));
  const save = useAction(async (wanted = form, version = base.version) => {
    try {
      await patch(path, finished(wanted, { version }));
      say("The webhook was saved.");
      go(`/panel/webhooks/${webhook.id}`);
    } catch (refusal) {
      if (refusal.kind !== "version-conflict") throw refusal;
      oppose(await webhookOf(webhook.id));
    }
  });
  const box = useFaultFocus(save);
  const submit = (event) => {
    event.preventDefault();
    save.run();
  };
  const settle = (choices) => {
    const settled = merged(typed(base), form, typed(theirs), choices);
    change(settled);
    rebase(theirs);
    oppose(null);
    save.run(settled, theirs.version);
  };
  return html`
    <${Page} title=${html`Edit <bdi>${webhook.name}</bdi>`} window="Edit ${webhook.name}"
      above=${html`<a href="/panel/webhooks">Webhooks</a> / <a href="/panel/webhooks/${webhook.id}"><bdi>
      ${webhook.name}</bdi></a>`}>
      <form class="form card" onSubmit=${submit} noValidate ref=${box}>
        <${WebhookFields} form=${form} change=${change} refusal=${save.refusal} forgive=${save.forgive} kept />
        <${Problem} refusal=${save.refusal} beside=${FIELDS} />
        <div class="form-actions"><${Action} type="submit" kind="primary" scope="integrations.write" busy=${save.busy}>
          Save<//> <a href="/panel/webhooks/${webhook.id}">Cancel</a></div>
      </form>
      ${theirs && html`<${Conflict} base=${typed(base)} mine=${form} theirs=${typed(theirs)} when=${theirs.lastUpdate}
        settle=${settle} close=${() => oppose(null)} />`}
    <//>`;
}
