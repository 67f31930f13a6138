//! Where nothing was revoked of late, functions do not read the list of revocations: they look for no more than its horizon,
//! which is moved by whatever revokes.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::harness::{
    Api, Application, Bundle, Call, Entity, LONG, Settings, Suite, Table, now, tests, until, until_gone,
};

tests![
    whatever_revokes_a_token_has_the_next_start_look_for_it,
    a_revocation_after_a_quiet_time_is_known_to_a_function_at_work_within_a_minute,
    a_revocation_of_a_program_that_moves_no_horizon_is_found_by_the_sweep,
    a_horizon_that_lies_farther_ahead_stays,
];

const HORIZON: (&str, &str) = ("REVOKED#HORIZON", "HORIZON");
/// How long a revocation may take to be known everywhere.
const MINUTE: Duration = Duration::from_secs(60);
/// All that was revoked before has ended.
const LONG_AGO: i64 = -26 * 3_600;

/// A bundle, and an entity in it with applications of its own.
struct Stand {
    bundle: Bundle,
    api: Api,
    entity: Entity,
    table: Table,
}

/// An application, and a token of it.
struct Client {
    made: Value,
    token: String,
}

impl Client {
    fn id(&self) -> &str {
        text(&self.made, "clientId")
    }
}

fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_else(|| panic!("{name} in {json}"))
}

impl Stand {
    async fn new(bundle: Bundle, api: Api) -> Self {
        let (entity, table) = (Entity::new(&api, "horizon".to_owned()).await, Table::of(&api.env));
        Self { bundle, api, entity, table }
    }

    async fn client(&self) -> Client {
        let body = json!({ "name": "n", "scopes": ["integrations.read"] });
        let made = self.entity.post("/application").json(&body).expect(201).await.json();
        let (id, secret) = (text(&made, "clientId"), text(&made, "clientSecret"));
        let form = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
        let token =
            text(&self.api.post("/oauth2/token").form(&form).expect(200).await.json(), "access_token").to_owned();
        Client { made, token }
    }

    /// The horizon lies so many seconds from now.
    async fn set_horizon(&self, seconds: i64) -> i64 {
        let until = (now() + seconds) * 1000;
        let item = json!({ "pk": { "S": HORIZON.0 }, "sk": { "S": HORIZON.1 }, "until": { "N": until.to_string() } });
        self.table.put(item).await;
        until
    }

    async fn horizon(&self) -> Option<i64> {
        text(&self.table.item(HORIZON.0, HORIZON.1).await?["until"], "N").parse().ok()
    }

    /// A revocation of all tokens of an application by now, with nothing else.
    async fn revoke_unnoticed(&self, client: &Client) {
        let (made, until) = (now() * 1000, (now() + 80_000) * 1000);
        let revocation = json!({
            "pk": { "S": "REVOKED#DAY" }, "sk": { "S": format!("{made:013}#client#{}", client.id()) },
            "until": { "N": until.to_string() }, "expiresAt": { "N": (until / 1000).to_string() },
        });
        self.table.put(revocation).await;
    }

    /// Another process of `list-events`, which has read nothing yet.
    async fn start(&self) {
        let before = self.bundle.process("list-events").await;
        before.kill();
        until_gone(&[before]).await;
        self.bundle.process("list-events").await;
    }

    fn asks(&self, client: &Client) -> Call {
        self.api.get(self.entity.path("/webhook/event/list")).bearer(&client.token)
    }
}

async fn whatever_revokes_a_token_has_the_next_start_look_for_it(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("SWEEP_INTERVAL", "1h")).await;
    let stand = Stand::new(bundle, api).await;
    type Ends = for<'a> fn(&'a Stand, &'a Client) -> Call;
    let ends: [Ends; 3] = [
        |stand, client| stand.api.as_client("/oauth2/revoke", Application::Platform, &[("token", &client.token)]),
        |stand, client| {
            let secret = text(&client.made["secrets"][0], "id");
            stand.entity.call("DELETE", &format!("/application/{}/secret/{secret}", client.id()))
        },
        |stand, client| stand.entity.call("DELETE", &format!("/application/{}", client.id())),
    ];
    for ends in ends {
        let client = stand.client().await;
        stand.set_horizon(LONG_AGO).await;
        stand.start().await;
        stand.asks(&client).expect(200).await;
        ends(&stand, &client).expect(200).await;
        stand.start().await;
        stand.asks(&client).expect(401).await;
    }
}

async fn a_revocation_after_a_quiet_time_is_known_to_a_function_at_work_within_a_minute(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("SWEEP_INTERVAL", "1h")).await;
    let stand = Stand::new(bundle, api).await;
    let client = stand.client().await;
    stand.set_horizon(LONG_AGO).await;
    stand.start().await;
    stand.asks(&client).expect(200).await;
    stand.entity.call("DELETE", &format!("/application/{}", client.id())).expect(200).await;
    until("the function knows", MINUTE, async || (stand.asks(&client).send().await.status == 401).then_some(())).await;
}

async fn a_revocation_of_a_program_that_moves_no_horizon_is_found_by_the_sweep(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let stand = Stand::new(bundle, api).await;
    let client = stand.client().await;
    until("a horizon", LONG, async || stand.horizon().await).await;
    let long_ago = stand.set_horizon(LONG_AGO).await;
    stand.revoke_unnoticed(&client).await;
    // Its successor reads the list at once.
    stand.bundle.process("sweep-deliveries").await.kill();
    until("the horizon was moved", LONG, async || stand.horizon().await.filter(|until| *until > long_ago)).await;
    stand.start().await;
    stand.asks(&client).expect(401).await;
}

async fn a_horizon_that_lies_farther_ahead_stays(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let stand = Stand::new(bundle, api).await;
    let client = stand.client().await;
    until("a horizon", LONG, async || stand.horizon().await).await;
    let ahead = stand.set_horizon(3 * 3_600).await;
    stand.entity.call("DELETE", &format!("/application/{}", client.id())).expect(200).await;
    stand.bundle.process("sweep-deliveries").await.kill();
    stand.table.remove("REVOKED#SNAPSHOT", "LAST").await;
    until("the next sweep has read the list", LONG, async || stand.table.item("REVOKED#SNAPSHOT", "LAST").await).await;
    assert_eq!(stand.horizon().await, Some(ahead));
}
