//! Problems in the words of tools. Use cases write Problems for callers of the API, but a model that reads about a path
//! or a header would look for a tool that does not exist.

use problem::{InputPart, Problem, Violation};

/// Phrases of the API, with their replacements for tools' callers. They are replaced in this order, so longer ones come
/// first.
const PHRASES: [(&str, &str); 12] = [
    (
        "one or more of pending, delivered, retrying, failed and cancelled, separated by commas",
        "an array of one or more of pending, delivered, retrying, failed and cancelled",
    ),
    ("is not a member of this operation", "is not an argument of this tool"),
    ("is not a parameter of this operation", "is not an argument of this tool"),
    ("must be the path's managing entity", "must be the call's managing entity"),
    ("; its `+` arrived as a space: write it as `%2B` in a query", "; write `+` before the offset"),
    ("`POST …/webhook/{webhookIdentifier}/secret`", "`rotate_webhook_secret`"),
    ("are listed at …/webhook/list", "are listed by `list_webhooks`"),
    ("are listed at …/payment/connection/list", "are listed by `list_connections`"),
    ("in the Retry-After header", "that the detail names"),
    ("already used with a different body", "already used with different arguments"),
    ("with the same body", "with the same arguments"),
    ("Idempotency-Key", "`idempotencyKey`"),
];

/// The parts before and after the managing entity in the catalogue's address.
const CATALOGUE: (&str, &str) = ("are listed at /api/managing-entity/", "/webhook/event/list");
/// The parts before and after a webhook in the address for replacing its secret.
const NEW_SECRET: (&str, &str) = ("`POST …/webhook/whk_", "/secret`");

/// The Problem for a caller of a tool, with its sentences in the words of tools. Arguments are one object, like a body.
pub fn of_tools(problem: Problem) -> Problem {
    let translated = |found: Violation| Violation { part: InputPart::Body, detail: text(&found.detail), ..found };
    let violations: Vec<_> = problem.violations().into_iter().map(translated).collect();
    if violations.is_empty() {
        return Problem { detail: text(&problem.detail), ..problem };
    }
    let Problem { detail, properties, .. } = Problem::invalid(violations);
    Problem { detail, properties, ..problem }
}

/// Text in the words of tools.
pub fn text(text: &str) -> String {
    let text = between(text, CATALOGUE, "are listed by `list_event_types`");
    let text = between(&text, NEW_SECRET, "`rotate_webhook_secret`");
    PHRASES.iter().fold(text, |text, (phrase, words)| text.replace(phrase, words))
}

/// The text with the part from `begin` to `end` replaced by `words`.
fn between(text: &str, (begin, end): (&str, &str), words: &str) -> String {
    let found = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?)));
    found.map_or_else(|| text.to_owned(), |(before, (_, after))| format!("{before}{words}{after}"))
}

#[cfg(test)]
mod tests {
    use auth::EntityId;
    use base::Time;
    use outbound::AddressRules;
    use problem::{ProblemKind, Query};
    use storage::IdempotencyError;
    use webhooks::{
        deliveries::jobs::RecoveryScope,
        subscriptions::{WebhookError, webhook::register::NewWebhook},
    };

    use super::*;

    /// Words of the API that callers of tools do not know.
    const FOREIGN: [&str; 10] =
        ["/api/", "…/", "POST", "Idempotency-Key", "comma", "%2B", "query", "parameter", "member that", "path"];

    fn said(problem: Problem) -> String {
        let problem = of_tools(problem);
        let violations = problem.violations().into_iter().map(|found| format!("{} {}", found.name(), found.detail));
        violations.chain([problem.detail.clone()]).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_problem_of_a_use_case_is_in_the_words_of_tools() {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let body =
            br#"{"name":"n","eventUrl":"https://example.com","eventList":["x"],"entity":{"identifier":"y"},"z":1}"#;
        let webhook = NewWebhook::read(body, &entity, &AddressRules::default()).err().expect("refused");
        let recovery = RecoveryScope::read(br#"{"from":1}"#, Time::from_millis(0)).expect_err("refused");
        let mut query = Query::new([("createdFrom", "2026-11-22T23:50:00 00:00"), ("x", "y")]);
        query.optional_time("createdFrom");
        let query = query.finish().expect_err("refused");
        let conflict = Problem::from(WebhookError::Idempotency(IdempotencyError::Conflict));
        let over = Problem::from(WebhookError::Idempotency(IdempotencyError::SecretOver { id: "whk_1".to_owned() }));
        for (problem, words) in [
            (webhook, "`list_event_types`"),
            (recovery, "is not an argument of this tool"),
            (query, "write `+` before the offset"),
            (conflict, "`idempotencyKey` was already used with different arguments"),
            (over, "`rotate_webhook_secret` gives it another secret"),
        ] {
            let said = said(problem);
            assert!(said.contains(words), "{said}");
            assert!(!FOREIGN.iter().any(|sign| said.contains(sign)), "{said}");
        }
    }

    #[test]
    fn every_phrase_is_in_a_text_of_the_service() {
        let sources = [
            include_str!("../../../shared/problem/src/kind.rs"),
            include_str!("../../../shared/problem/src/near.rs"),
            include_str!("../../../shared/problem/src/time.rs"),
            include_str!("../../../shared/problem/src/query.rs"),
            include_str!("../../../shared/problem/src/json_body.rs"),
            include_str!("../../../shared/storage/src/idempotency/request.rs"),
            include_str!("../../../shared/webhooks/src/deliveries/queries/filters.rs"),
            include_str!("../../../shared/webhooks/src/events/unknown.rs"),
            include_str!("../../../shared/webhooks/src/subscriptions/error.rs"),
            include_str!("../../../shared/webhooks/src/subscriptions/webhook/members.rs"),
        ]
        .concat();
        // The code composes these two phrases.
        let composed = ["is not a member", "is not a parameter"];
        for (phrase, _) in PHRASES {
            let is_used = composed.iter().any(|begin| phrase.starts_with(begin)) || sources.contains(phrase);
            assert!(is_used, "no text has `{phrase}` any more: remove it");
        }
        for phrase in [CATALOGUE.0, CATALOGUE.1, NEW_SECRET.1] {
            assert!(sources.contains(phrase), "no text has `{phrase}` any more");
        }
    }

    #[test]
    fn a_problem_keeps_its_kind_and_its_properties() {
        let problem = Problem::new(ProblemKind::WebhookLimit, "A limit.").with_property("limit", 200);
        let translated = of_tools(problem);
        assert_eq!((translated.kind, translated.detail.as_str()), (ProblemKind::WebhookLimit, "A limit."));
        assert_eq!(translated.properties["limit"], 200);
    }
}
