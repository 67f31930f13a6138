//! The test that `isolation_tenants` runs on a machine whose only interface is `lo`: a tenant's names resolve late or
//! never.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use contract_test::contract_test;
use fakes::{NameAnswer, NameServer};

use crate::{
    harness::{LONG, Settings, Suite, until},
    isolation_tenants::{Noisy, Quiet, assert_not_held_up},
};

/// No request reaches this port, since the attempt times out during name resolution.
const PORT: u16 = 9;

#[contract_test(on_demand)]
async fn names_that_are_answered_late_or_never_hold_up_no_other_name(suite: Arc<Suite>) {
    let names =
        NameServer::start(SocketAddr::from(([127, 0, 0, 1], 53))).await.expect("port 53 is free in the namespace");
    let local = vec![[127, 0, 0, 1].into()];
    names.on("quiet.example.com", [NameAnswer::Addresses(local.clone())]);
    let urls: Vec<String> = (0..40).map(|number| format!("http://noisy-{number}.example.com:{PORT}/")).collect();
    for number in 0..40 {
        let answer = match number % 2 {
            0 => NameAnswer::Silence,
            _ => NameAnswer::Late(Duration::from_secs(14), local.clone()),
        };
        names.on(&format!("noisy-{number}.example.com"), [answer]);
    }
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("RETRY_SCHEDULE", "0s,5s,5m")).await;
    let quiet = Quiet::named(&api, "quiet.example.com").await;
    let asked = || (0..40).map(|number| names.lookups(&format!("noisy-{number}.example.com"))).sum::<usize>();
    assert_not_held_up("slow names", &quiet, async |_| {
        // Use a different tenant in each round: after 20 attempts without a response, its webhooks are paused.
        let noisy = Noisy::at(&api, &urls).await;
        let before = asked();
        noisy.burst().await;
        until("names of the noisy tenant are looked up", LONG, async || (asked() > before).then_some(())).await;
    })
    .await;
    // On SIGTERM, the function would wait for its attempts in progress.
    bundle.cut_power().await;
}
