//! Secrets of the service and the providers do not leak.

use std::{collections::BTreeSet, fs, sync::Arc};

use aho_corasick::AhoCorasick;
use contract_test::contract_test;
use fakes::provider::PROVIDERS_WORDS;
use serde_json::Value;

use crate::harness::{Bundle, Choice, LONG, PROVIDERS, Suite, query, until};

fn spellings(secret: &str) -> BTreeSet<String> {
    let escaped: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string();
    let json = Value::from(secret).to_string();
    let json = json.trim_matches('"').to_owned();
    let twice = Value::from(json.as_str()).to_string();
    let base64 = base64::Engine::encode(&base64::prelude::BASE64_STANDARD_NO_PAD, secret);
    [secret.to_owned(), escaped, percent, twice.trim_matches('"').to_owned(), json, base64].into()
}

fn value(cookie: &str) -> String {
    cookie.split_once('=').map_or("", |(_, value)| value).to_owned()
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("it is a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn logs(bundle: &Bundle) -> Vec<(String, String)> {
    let read = |path: std::path::PathBuf| (path.display().to_string(), fs::read(path).unwrap_or_default());
    let logs = files(&bundle.data().join("logs")).into_iter().map(read);
    logs.map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned())).collect()
}

#[contract_test]
async fn no_secret_is_in_clear_in_the_table_the_logs_or_an_answer(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    // Cause every kind of success and failure, in addition to those in the other tests.
    let mut states = Vec::new();
    for provider in PROVIDERS {
        let waiting = entity.visit(provider, Choice::ALLOW).await;
        let refused = entity.visit(provider, Choice::leading_to("fail-no-access-token")).await;
        refused.callback().expect(500).await;
        let denied = entity.visit(provider, Choice::DENY).await;
        denied.arrive("denied").await;
        let linked = entity.link(provider, Choice { first_lifetime: Some(2), ..Choice::ALLOW }).await;
        linked.callback().refused(400, "invalid-state").await;
        states.extend(
            [waiting, refused, denied, linked].into_iter().flat_map(|visit| [visit.state, value(&visit.cookie)]),
        );
    }
    until("every connection that expires is refreshed", LONG, async || {
        let connections = entity.connections().await;
        let fresh = |connection: &Value| connection["lastUpdate"] != connection["connectedDate"];
        connections.iter().filter(|connection| connection["provider"] != "stripe").all(fresh).then_some(())
    })
    .await;
    for provider in ["sim-basic", "square", "stripe"] {
        entity.disconnect(provider).expect(200).await;
    }
    let token = entity.link("sim-basic", Choice::leading_to("refresh-wrong-types")).await;
    states.extend([token.state, value(&token.cookie)]);

    let mut secrets = suite.providers().secrets();
    assert!(secrets.len() > 50, "only {} secrets are known", secrets.len());
    let sample = [("sample".to_owned(), format!("a={}&b=c", states[0]))];
    assert_eq!(found(&sample, &[states[0].clone()].into()).len(), 1, "the search finds a secret");
    let answers = suite.api.seen();
    let in_answers = found(&answers, &secrets);
    assert!(in_answers.is_empty(), "in an answer: {in_answers:#?}");
    // The client that requested the connection gets the state, and its browser gets the cookie; both receive them only
    // on the start page.
    secrets.extend(states);
    for (path, text) in &answers {
        if let Ok(body) = serde_json::from_str::<Value>(text.split_once('\n').map_or("", |(_, body)| body))
            && let Some(address) = body["authorizationUrl"].as_str()
        {
            assert!(path.ends_with("/connection"), "{path}");
            secrets.extend(query(address).into_iter().filter(|(name, _)| name == "state").map(|(_, state)| state));
        }
    }
    let told = |path: &str| path.ends_with("/connection") || path.ends_with("/oauth2/start");
    let others: Vec<_> = answers.into_iter().filter(|(path, _)| !told(path)).collect();
    let in_others = found(&others, &secrets);
    assert!(in_others.is_empty(), "in an answer: {in_others:#?}");

    let items = suite.table().scan().await;
    assert!(items.iter().any(|item| item["sealedTokens"]["S"].is_string()), "sealed tokens are stored");
    let rows: Vec<_> = items.iter().map(|item| (item["pk"]["S"].to_string(), item.to_string())).collect();
    let in_table = found(&rows, &secrets);
    assert!(in_table.is_empty(), "in the table: {in_table:#?}");

    secrets.insert(PROVIDERS_WORDS.to_owned());
    let in_logs = found(&logs(suite.bundle()), &secrets);
    assert!(in_logs.is_empty(), "in a log: {in_logs:#?}");
}

/// The strings that contain secrets, each with the secret.
fn found(texts: &[(String, String)], secrets: &BTreeSet<String>) -> Vec<(String, String)> {
    let spelt = secrets.iter().flat_map(|secret| spellings(secret).into_iter().map(move |spelling| (secret, spelling)));
    let (of, patterns): (Vec<_>, Vec<_>) = spelt.unzip();
    // Search for all at once, since all tests' responses amount to megabytes.
    let search = AhoCorasick::new(patterns).expect("a few hundred patterns");
    let found: BTreeSet<_> = texts
        .iter()
        .flat_map(|(name, text)| search.find_overlapping_iter(text).map(move |at| (name, at.pattern())))
        .map(|(name, pattern)| (name.clone(), of[pattern].clone()))
        .collect();
    found.into_iter().collect()
}
