// The payment providers: connections, connecting, and returning from a provider.
import { html, useState } from "../parts/html.js";
import { get, post, remove } from "../api.js";
import { go } from "../address.js";
import { Action } from "../parts/action.js";
import { Badge } from "../parts/badge.js";
import { Dialog } from "../parts/dialog.js";
import { Icon } from "../parts/icon.js";
import { Page } from "../parts/page.js";
import { Problem } from "../parts/problem.js";
import { SelectField } from "../parts/field.js";
import { Time } from "../parts/time.js";
import { Waiting } from "../parts/empty.js";
import { focusTitle } from "../parts/focus.js";
import { say } from "../parts/notices.js";
import { IS_FRAMED } from "../embedding.js";
import { may, session } from "../session.js";
import { useAction, useLoad } from "../parts/load.js";
import { BROKEN, landing } from "../words/providers.js";
import { CONNECTION } from "../words/statuses.js";

const path = (provider) => `/payment/provider/${encodeURIComponent(provider)}/connection`;

/** The maximum number of items on a page. There are fewer providers, and at most one connection to each. */
const ALL = { limit: 100 };

/** The connections, the providers that are set up, and the provider's display name. */
async function read() {
  const [connections, providers] = await Promise.all([
    get("/payment/connection/list", ALL), get("/payment/provider/list", ALL),
  ]);
  const labels = new Map(providers.items.map(({ name, label }) => [name, label]));
  // A connection may be to a provider that is no longer set up.
  const label = (provider) => labels.get(provider) ?? provider;
  return { connections: connections.items, providers: providers.items, label, isOffered: (name) => labels.has(name) };
}

export default function Providers({ query }) {
  const list = useLoad(read, []);
  const [asked, ask] = useState(null);
  const { connections: connected = [], providers = [], label, isOffered } = list.data ?? {};
  return html`
    <${Page} title="Payment providers" lead="Your accounts at payment providers, connected to this service."
      beside=${providers.length > 0 && html`<${Action} kind="primary" icon="plus" scope="payment.write"
        onClick=${() => ask({ connect: "" })}>Connect a provider<//>`}>
      <${Problem} refusal=${list.error} retry=${list.reload} />
      ${list.data && query.outcome && html`<${Landing} ...${query} connections=${connected} label=${label} />`}
      ${!list.data && !list.error && html`<${Waiting} what="Loading connections" />`}
      ${list.data && connected.length === 0 && html`<p class="hint">No connections yet. ${providers.length === 0
        ? "No payment provider is set up here. Ask this service’s operator."
        : may("payment.write") && `Select a provider and sign in there. It asks for your consent and sends you back here.
          This service never sees your password.`}</p>`}
      ${list.data && html`
        <ul class="cards">
          ${connected.map((connection) => html`<${Connection} key=${connection.id} connection=${connection} ask=${ask}
            label=${label(connection.provider)} isOffered=${isOffered(connection.provider)} />`)}
          ${providers.filter(({ name }) => !connected.some(({ provider }) => provider === name)).map((offered) =>
            html`
            <li class="card offered" key=${offered.name}><div class="card-head"><h2>${offered.label}</h2></div>
              <p class="faint">Not connected</p>
              <${Action} scope="payment.write" onClick=${() => ask({ connect: offered.name })}>Connect${" "}
                ${offered.label}<//></li>`)}
        </ul>`}
      ${asked?.connect !== undefined && html`<${Connecting} first=${asked.connect} connections=${connected}
        providers=${providers} label=${label} close=${() => ask(null)} done=${list.reload} />`}
      ${asked?.disconnect && html`<${Disconnecting} connection=${asked.disconnect}
        label=${label(asked.disconnect.provider)} close=${() => ask(null)} done=${list.reload} />`}
    <//>`;
}

/** The outcome for a person who returns from a provider, according to the list of connections, not the address. */
function Landing({ outcome, provider, error, connections, label }) {
  const words = landing(outcome, label(provider), connections.find((connection) => connection.provider === provider));
  if (!words || !/^[a-z0-9-]{1,40}$/.test(provider)) return null;
  return html`
    <section class="verdict ${words.tone}" role="status" aria-label="Outcome">
      <span class="medal"><${Icon} name=${words.icon} /></span>
      <div><h2>${words.title}</h2><p>${words.text}</p>
        ${error && /^[A-Za-z0-9_.-]{1,64}$/.test(error) && html`<p class="fine">Error code from the provider:${" "}
          <code>${error}</code></p>`}
        <p><button type="button" class="small" onClick=${() => go("/panel/providers", { replace: true })}>OK
          </button></p></div>
    </section>`;
}

function Connection({ connection, ask, label, isOffered }) {
  const { provider, account, status, scopes, connectedDate, expiresDate, brokenReason, lastErrorDetail } = connection;
  const { tone, icon, word } = CONNECTION[status];
  return html`
    <li class="card">
      <div class="card-head"><h2>${label}</h2><${Badge} tone=${tone} icon=${icon}>${word}<//></div>
      <dl class="facts">
        <div><dt>Account</dt><dd>${account ?? "Not named by the provider"}</dd></div>
        <div><dt>Connected</dt><dd><${Time} date=${connectedDate} as="both" /></dd></div>
        ${expiresDate && html`<div><dt>Access</dt><dd>until <${Time} date=${expiresDate} />
          ${status === "connected" && ", renewed automatically"}</dd></div>`}
        <div><dt>Scopes</dt><dd>${scopes.join(", ")}</dd></div>
      </dl>
      ${status === "broken" && html`<p class="trouble">
        ${BROKEN[brokenReason] ?? "The connection no longer works. Connect again."}</p>`}
      ${lastErrorDetail && html`<p class="fine outside">Last renewal: ${lastErrorDetail}</p>`}
      ${!isOffered && html`<p class="hint">This provider is no longer set up here.</p>`}
      <div class="form-actions">
        ${isOffered && html`<${Action} kind=${status === "broken" ? "primary" : ""} scope="payment.write"
          onClick=${() => ask({ connect: provider })}>Connect again<//>`}
        <${Action} kind="danger" scope="payment.remove" onClick=${() => ask({ disconnect: connection })}>Disconnect…
          <//>
      </div>
    </li>`;
}

const focused = (element) => element?.focus();

/** The dialog that sends a person to a provider. The address works once, and must not be shown to others. */
function Connecting({ first, connections, providers, label, close, done }) {
  const [provider, choose] = useState(first || providers[0].name);
  const [address, offer] = useState(null);
  const working = connections.find((connection) => connection.provider === provider &&
    connection.status === "connected");
  const connect = useAction(async () => {
    const { authorizationUrl } = await post(path(provider), working ? { replace: true } : {});
    // Providers' pages and the start page cannot be framed. A browser may block a tab that a script opens.
    if (IS_FRAMED) offer(authorizationUrl);
    else location.assign(authorizationUrl);
  });
  if (address) {
    const finish = () => {
      close();
      return done();
    };
    return html`
      <${Dialog} title="Continue in a new tab" close=${finish}>
        <p>${label(provider)} cannot be shown inside this page, so it opens in a new tab. The link works once. Come back
          here when you have finished.</p>
        <div class="dialog-actions"><button type="button" onClick=${finish}>I have finished</button>
          <a class="button primary" href=${address} target="_blank" rel="noopener" ref=${focused}>Open ${label(provider)}
            </a></div>
      <//>`;
  }
  return html`
    <${Dialog} title="Connect ${first ? label(first) : "a payment provider"}" close=${close}>
      ${!first && html`<${SelectField} label="Provider" value=${provider} change=${choose}
        options=${providers.map((offered) => [offered.name, offered.label])} />`}
      <ol class="steps"><li>The next page shows the provider and the managing entity to connect:${" "}
        <strong>${session().entity}</strong>.</li><li>You sign in at the provider and allow access.</li>
        <li>The provider sends you back here, and you see the result.</li></ol>
      ${working && html`<p class="note"><${Icon} name="warning" /> ${label(provider)} is already
        connected${working.account && html`, with <code>${working.account}</code>`}. The account that you select now
        replaces it.</p>`}
      <${Problem} refusal=${connect.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${close}>Cancel</button>
        <${Action} kind="primary" scope="payment.write" busy=${connect.busy}
        onClick=${() => connect.run()}>Continue to ${label(provider)}<//></div>
    <//>`;
}

/** The values of `providerAccess` for which access may remain at the provider. */
const LEFT = ["not-revoked", "unknown"];

function Disconnecting({ connection: { provider, account }, label, close, done }) {
  const [left, leave] = useState(null);
  const disconnect = useAction(async () => {
    const { providerAccess, message } = await remove(path(provider));
    // People have to read what to do at the provider, so this stays until it is closed.
    if (LEFT.includes(providerAccess)) {
      leave(message);
      return;
    }
    say(message);
    await finish();
  });
  const finish = async () => {
    close();
    await done();
    focusTitle();
  };
  // After a refusal, another connection may be in the list.
  const cancel = () => {
    close();
    if (disconnect.refusal) done();
  };
  if (left) {
    return html`
      <${Dialog} title="${label} is disconnected" close=${finish}>
        <p class="note"><${Icon} name="warning" /> ${left}</p>
        <div class="dialog-actions"><button type="button" class="primary" onClick=${finish} ref=${focused}>OK
          </button></div>
      <//>`;
  }
  return html`
    <${Dialog} title="Disconnect ${label}?" close=${cancel}>
      <p>This service revokes its access at ${label}
        ${account && html` to <code>${account}</code>`} and removes the stored data. Payments through this connection
        stop. You can connect again.</p>
      <${Problem} refusal=${disconnect.refusal} />
      <div class="dialog-actions"><button type="button" onClick=${cancel}>Cancel</button>
        <${Action} kind="danger" scope="payment.remove" busy=${disconnect.busy} onClick=${() => disconnect.run()}>
        Disconnect<//></div>
    <//>`;
}
