//! A long list of revocations: a start reads its snapshot and what is newer, and without a good snapshot the whole list.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{
    Api, Application, Bundle, Entity, Forge, LONG, Settings, Suite, Table, now, tests, until, until_gone,
};

tests![
    a_start_reads_the_snapshot_of_the_revocations_and_what_is_newer,
    without_a_good_snapshot_a_start_reads_the_whole_list,
];

const LISTED: usize = 2_000;
const SNAPSHOT: (&str, &str) = ("REVOKED#SNAPSHOT", "LAST");

fn application(number: usize) -> String {
    format!("app{number:022}")
}

/// The revocation of a removed application, made an hour ago.
fn revocation(number: usize) -> Value {
    let (made, until) = (now() * 1000 - 3_600_000, now() * 1000 + 80_000_000);
    json!({
        "pk": { "S": "REVOKED#DAY" }, "sk": { "S": format!("{made:013}#client#{}", application(number)) },
        "until": { "N": until.to_string() }, "expiresAt": { "N": (until / 1000).to_string() },
    })
}

/// How many revocations a snapshot has.
fn counted(snapshot: &Value) -> usize {
    snapshot["count"]["N"].as_str().and_then(|count| count.parse().ok()).expect("a number")
}

/// A bundle with a long list and its snapshot, which this returns as well.
struct Stand {
    bundle: Bundle,
    api: Api,
    entity: Entity,
    table: Table,
    forge: Forge,
    revocations: Vec<Value>,
    snapshot: Value,
}

impl Stand {
    async fn new(bundle: Bundle, api: Api) -> Self {
        let entity = Entity::new(&api, "snapshot".to_owned()).await;
        let (table, forge) = (Table::of(&api.env), Forge::of(&bundle));
        let revocations: Vec<Value> = (0..LISTED).map(revocation).collect();
        table.put_all(revocations.clone()).await;
        // The sweep that runs has read the list before, or a part of it meanwhile, and does not again for some minutes.
        bundle.process("sweep-deliveries").await.kill();
        let snapshot = until("a snapshot of the whole list", LONG, async || {
            let snapshot = table.item(SNAPSHOT.0, SNAPSHOT.1).await?;
            if counted(&snapshot) >= LISTED {
                return Some(snapshot);
            }
            table.remove(SNAPSHOT.0, SNAPSHOT.1).await;
            bundle.process("sweep-deliveries").await.kill();
            None
        });
        let snapshot = snapshot.await;
        Self { bundle, api, entity, table, forge, revocations, snapshot }
    }

    /// Starts `list-events` anew, without this revocation in the list.
    async fn start_without(&self, number: usize) {
        let sk = self.revocations[number]["sk"]["S"].as_str().expect("a text");
        self.table.remove("REVOKED#DAY", sk).await;
        let before = self.bundle.process("list-events").await;
        before.kill();
        until_gone(&[before]).await;
        self.bundle.process("list-events").await;
    }

    /// The status of the answer to a token that this application got an hour ago.
    async fn status(&self, number: usize) -> u16 {
        let mut claims = self.forge.claims();
        (claims["client_id"], claims["iat"]) = (application(number).into(), (now() - 3_600).into());
        let token = self.forge.token(&self.forge.header(), &claims);
        self.api.get(self.entity.path("/webhook/event/list")).bearer(&token).send().await.status
    }
}

async fn a_start_reads_the_snapshot_of_the_revocations_and_what_is_newer(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let stand = Stand::new(bundle, api).await;
    let token = stand.api.new_token(Application::Demo, "integrations.read").await;
    let path = stand.entity.path("/webhook/event/list");
    stand.api.as_client("/oauth2/revoke", Application::Demo, &[("token", &token)]).expect(200).await;
    stand.start_without(0).await;
    assert_eq!(stand.status(0).await, 401, "the snapshot alone says so");
    assert_eq!(stand.status(LISTED - 1).await, 401);
    assert_ne!(stand.status(LISTED).await, 401, "it was never revoked");
    stand.api.get(path).bearer(&token).expect(401).await;
}

/// Makes a snapshot useless; it is given a time in an hour as well.
type Spoil = fn(&mut Value, &str);

async fn without_a_good_snapshot_a_start_reads_the_whole_list(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let stand = Stand::new(bundle, api).await;
    let in_an_hour = (now() * 1000 + 3_600_000).to_string();
    let spoilt: [(&str, Spoil); 5] = [
        ("of a part", |snapshot, _| snapshot["count"] = json!({ "N": "5000" })),
        ("of the future", |snapshot, in_an_hour| snapshot["taken"] = json!({ "N": in_an_hour })),
        ("of other kinds", |snapshot, _| snapshot["kinds"] = json!({ "S": "token client key" })),
        ("without records", |snapshot, _| drop(snapshot.as_object_mut().expect("an item").remove("records"))),
        ("of parts that are not there", |snapshot, _| snapshot["count"] = json!({ "N": "50000" })),
    ];
    for (number, (what, spoil)) in spoilt.into_iter().enumerate() {
        let mut snapshot = stand.snapshot.clone();
        spoil(&mut snapshot, &in_an_hour);
        stand.table.put(snapshot).await;
        stand.start_without(number).await;
        assert_eq!(stand.status(LISTED - 1).await, 401, "a snapshot {what}");
        assert_ne!(stand.status(number).await, 401, "a snapshot {what} is not believed");
    }
    stand.table.remove(SNAPSHOT.0, SNAPSHOT.1).await;
    stand.start_without(10).await;
    assert_eq!(stand.status(LISTED - 1).await, 401, "no snapshot");
    assert_ne!(stand.status(10).await, 401);
}
