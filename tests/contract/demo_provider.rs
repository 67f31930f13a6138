//! The payment provider that `make demo-provider` starts.

use std::{process::Stdio, sync::Arc};

use contract_test::contract_test;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

use crate::harness::{Entity, LONG, Settings, Suite, continue_to_provider, free_port, local};

#[contract_test]
async fn the_service_finds_the_provider_at_the_chosen_port(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let program = local().expect("the shared bundle runs it").with_file_name("demo-provider");
    let port = free_port();
    let mut provider = Command::new(program);
    provider.args(["--port", &port.to_string(), "--data", &bundle.data().display().to_string()]);
    let provider = provider.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let mut provider = provider.expect("`cargo build --package fakes --bins` builds it");
    let mut lines = BufReader::new(provider.stdout.take().expect("it is piped")).lines();
    let said = timeout(LONG, lines.next_line()).await.expect("it reports the port at once").expect("text");
    assert_eq!(said, Some(format!("The secret `provider-demo` names port {port} now.")));

    let provider_at_its_port = format!("http://127.0.0.1:{port}/demo/authorize");
    let start = Entity::new(&api, "asks".to_owned()).await.authorization_url("demo").await;
    let address = continue_to_provider(&api, &start, None).await.address;
    assert!(address.starts_with(&provider_at_its_port), "{address}");
    let secret = bundle.data().join("secrets/provider-demo.json");
    assert!(
        std::fs::read_to_string(secret).expect("it was made").contains(&provider_at_its_port),
        "for the next start"
    );
}
