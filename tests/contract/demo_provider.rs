//! The payment provider of `make demo-provider`.

use std::{process::Stdio, sync::Arc};

use tokio::process::Command;

use crate::harness::{Entity, LONG, Settings, Suite, free_port, go_on, local, tests, until};

tests![the_service_finds_the_provider_at_the_port_that_was_chosen];

async fn the_service_finds_the_provider_at_the_port_that_was_chosen(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let program = local().expect("the shared bundle runs it").with_file_name("demo-provider");
    let port = free_port();
    let mut provider = Command::new(program);
    provider.args(["--port", &port.to_string(), "--data", &bundle.data().display().to_string()]);
    let provider = provider.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true).spawn();
    let _provider = provider.expect("`cargo build --workspace --bins` builds it");
    let secret = bundle.data().join("secrets/provider-demo.json");
    let named = format!("http://127.0.0.1:{port}/demo/authorize");
    until("the secret to name the port", LONG, async || {
        std::fs::read_to_string(&secret).ok()?.contains(&named).then_some(())
    })
    .await;

    let entity = Entity::new(&api, "asks".to_owned()).await;
    // The file is written before Secrets Manager is told.
    let address = until("the provider at its port", LONG, async || {
        let start = entity.authorization_url("demo").await;
        let address = go_on(&api, &start, None).await.address;
        address.starts_with(&named).then_some(address)
    });
    address.await;
}
