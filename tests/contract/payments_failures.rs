//! Provider failures while a code is being exchanged: a single attempt, an empty response, and no connection.

use std::sync::Arc;

use contract_test::contract_test;
use fakes::provider::{Failure, PROVIDERS_WORDS, RequestOutcome};

use crate::harness::{ApiResponse, Choice, Entity, Suite, new_account};

/// Asserts that the callback failed in the same way as for every other failure.
fn says_nothing(answer: &ApiResponse) {
    assert_eq!((answer.status, answer.body.as_slice()), (500, &b"{}"[..]), "{}", answer.exchange);
    assert!(answer.header("content-type").starts_with("application/json"), "{}", answer.exchange);
    assert_eq!(answer.header("location"), "", "{}", answer.exchange);
    assert!(!format!("{:?}", answer.headers).contains(PROVIDERS_WORDS), "{}", answer.exchange);
}

async fn fails(suite: Arc<Suite>, entity: Entity, provider: &'static str, name: &'static str) {
    let visit = entity.visit(provider, Choice::leading_to(&format!("fail-{name}"))).await;
    let answer = visit.callback().answered().await;
    says_nothing(&answer);
    // There is a single attempt, since presenting a code twice can end its connection.
    assert_eq!(suite.providers().exchanges(visit.code()), [RequestOutcome::Failed], "{name}");
    visit.callback().refused(400, "invalid-state").await;
    assert_eq!(suite.providers().exchanges(visit.code()).len(), 1, "{name}");
    assert!(entity.connections().await.is_empty(), "{name}");
}

#[contract_test]
async fn every_failure_at_the_provider_is_a_500_with_an_empty_object(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    // Test these concurrently, since some take as long as the service waits.
    let failures: Vec<_> = Failure::ALL
        .into_iter()
        .map(|(name, _)| tokio::spawn(fails(Arc::clone(&suite), entity.clone(), "sim-basic", name)))
        .collect();
    assert!(failures.len() >= 12);
    for failure in failures {
        failure.await.expect("every failure has the same response");
    }
    for provider in ["square", "stripe", "sim-jwt"] {
        for name in ["invalid_grant", "500", "not-json"] {
            fails(Arc::clone(&suite), entity.clone(), provider, name).await;
        }
    }
    let strays = suite.providers().strays();
    assert!(!strays.iter().any(|path| path.starts_with("/elsewhere")), "a redirect was followed: {strays:?}");
}

#[contract_test]
async fn a_code_that_the_provider_does_not_know_connects_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for provider in ["sim-basic", "square"] {
        let visit = entity.visit(provider, Choice::ALLOW).await;
        let code = format!("made-up-by-{}", entity.id);
        let path = format!("/api/public/{provider}/oauth2/callback?code={code}&state={}", visit.state);
        says_nothing(&visit.at(path).answered().await);
        assert_eq!(suite.providers().exchanges(&code).len(), if provider == "sim-basic" { 1 } else { 2 });
    }
    assert!(entity.connections().await.is_empty());
}

#[contract_test]
async fn a_failure_leaves_an_older_connection_as_it_was(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    entity.link("sim-basic", Choice::ALLOW).await;
    let before = entity.connection("sim-basic").await;
    let again = entity.replacing_url("sim-basic").await;
    let visit = entity.visit_from(&again, &new_account(), Choice::leading_to("fail-500")).await;
    says_nothing(&visit.callback().answered().await);
    assert_eq!(entity.connection("sim-basic").await, before);
}
