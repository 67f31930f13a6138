//! The start page, and how a connection is bound to a browser (RFC 9700 §4.7).

use std::sync::Arc;

use crate::harness::{
    ApiResponse, Choice, Entity, Suite, Visit, choose, continue_to_provider, cookie_of, hash_of, link_of, new_account,
    query, state_of,
};
use contract_test::contract_test;

/// The path in one of the service's URLs.
fn path<'a>(suite: &Suite, address: &'a str) -> &'a str {
    address.strip_prefix(suite.api.base_url()).expect("an address of the service")
}

async fn open(suite: &Suite, start: &str) -> ApiResponse {
    suite.api.get(path(suite, start)).expect(200).await
}

/// Asserts that the provider received no request, and that the callback from the person's browser still works.
async fn still_works(suite: &Suite, visit: &Visit) {
    assert_eq!(suite.providers().exchanges(visit.code()), []);
    visit.arrive("connected").await;
}

#[contract_test]
async fn the_start_page_names_the_entity_the_provider_and_the_scopes(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (provider, label) in [("sim-basic", "sim-basic"), ("stripe", "Stripe")] {
        let start = entity.authorization_url(provider).await;
        let answer = open(&suite, &start).await;
        let page = answer.text();
        assert!(page.contains(&format!("<strong>{}</strong>", entity.id)) && page.contains(label), "{page}");
        for absent in ["Current connection", "<script", "http-equiv"] {
            assert!(!page.contains(absent), "{absent}: {page}");
        }
        if provider == "sim-basic" {
            assert!(page.contains("payments.read") && page.contains("payments.write"), "{page}");
        }
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("location"), "", "a person sees the page before any redirect");
    }
}

/// A stranger requests a connection for the stranger's own entity and has a victim complete it: through the provider's
/// URL, and with a browser that already has one of this service's cookies.
#[contract_test]
async fn a_victim_does_not_complete_a_strangers_connection(suite: Arc<Suite>) {
    let stranger = suite.entity().await;
    let victim = suite.entity().await;
    let start = stranger.authorization_url("sim-pkce").await;
    let sent_to_the_victim = continue_to_provider(&suite.api, &start, None).await.address;
    let victims_browser = victim.link("sim-pkce", Choice::ALLOW).await.cookie;
    let account = new_account();
    let back = choose(&sent_to_the_victim, &account, Choice::ALLOW).await;
    let callback = || suite.api.get(back.path(suite.api.base_url()));
    callback().refused(400, "invalid-state").await;
    callback().header("cookie", &victims_browser).refused(400, "invalid-state").await;
    // Try again, with the start page's link opened invisibly.
    let hidden = cookie_of(&open(&suite, &start).await);
    callback().header("cookie", &hidden).refused(400, "invalid-state").await;
    assert_eq!(suite.providers().exchanges(back.parameter("code")), []);
    assert!(stranger.connections().await.is_empty());
    assert_ne!(victim.connection("sim-pkce").await.expect("connected")["account"], account);
}

#[contract_test]
async fn a_callback_of_another_browser_is_refused_and_costs_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let visit = entity.visit("sim-basic", Choice::ALLOW).await;
    let other = entity.visit("sim-basic", Choice::ALLOW).await.cookie;
    let (name, value) = visit.cookie.split_once('=').expect("a cookie is a pair");
    let back = visit.back.path(suite.api.base_url());
    let declined = format!("/api/public/sim-basic/oauth2/callback?error=access_denied&state={}", visit.state);
    for path in [back, &declined] {
        suite.api.get(path).refused(400, "invalid-state").await;
        for cookie in [
            other.clone(),
            name.to_owned(),
            format!("{name}="),
            format!("{name}={}", value.to_lowercase()),
            format!("{name}={}", hash_of(value)),
            format!("{name}={}", visit.state),
            format!("{}={value}", name.trim_start_matches("__Host-")),
        ] {
            suite.api.get(path).header("cookie", &cookie).refused(400, "invalid-state").await;
        }
    }
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn a_callback_finds_its_cookie_beside_cookies_of_any_bytes(suite: Arc<Suite>) {
    for other in ["name=José".as_bytes(), b"name=Jos\xe9"] {
        let visit = suite.entity().await.visit("sim-basic", Choice::ALLOW).await;
        let cookies = [other, b"; ", visit.cookie.as_bytes()].concat();
        suite.api.get(visit.back.path(suite.api.base_url())).header("cookie", cookies).expect(302).await;
    }
}

#[contract_test]
async fn only_the_page_itself_leads_on_from_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let start = entity.authorization_url("sim-basic").await;
    let page = open(&suite, &start).await;
    let cookie = cookie_of(&page);
    let link = link_of(&page, path(&suite, &start));
    // A stranger who knows the URL gets a link that is bound to another browser.
    let strangers = link_of(&open(&suite, &start).await, path(&suite, &start));
    let another = entity.authorization_url("sim-basic").await;
    let of_another = link_of(&suite.api.get(path(&suite, &another)).header("cookie", &cookie).expect(200).await, &link);
    let tag_of_another = of_another.rsplit_once("go=").expect("a tag").1;
    let swapped = format!("{}&go={tag_of_another}", path(&suite, &start));
    for (link, cookie, words) in [
        (&link, None, "Allow cookies"),
        (&strangers, Some(&cookie), "Please continue again"),
        (&swapped, Some(&cookie), "Please continue again"),
    ] {
        let call = suite.api.get(link);
        let answer = cookie.into_iter().fold(call, |call, cookie| call.header("cookie", cookie)).expect(200).await;
        assert_eq!(answer.header("location"), "", "{}", answer.exchange);
        assert!(answer.text().contains(words), "{}", answer.exchange);
    }
    let item = suite.table().item(&format!("STATE#{}", hash_of(&state_of(&start))), "STATE").await.expect("kept");
    assert!(item.get("browser").is_none(), "nothing was bound: {item:#}");
    let answer = suite.api.get(&link).header("cookie", &cookie).expect(302).await;
    assert!(answer.header("location").starts_with(&suite.providers().url("sim-basic", "authorize")));
}

#[contract_test]
async fn several_connections_are_made_in_one_browser_at_once(suite: Arc<Suite>) {
    let mut under_way = Vec::new();
    let mut browser: Option<String> = None;
    for provider in ["sim-basic", "sim-pkce", "square", "sim-basic", "sim-basic"] {
        let entity: Entity = suite.entity().await;
        let start = entity.authorization_url(provider).await;
        let departure = continue_to_provider(&suite.api, &start, browser.as_deref()).await;
        assert!(browser.is_none_or(|cookie| cookie == departure.cookie), "a browser has one cookie");
        browser = Some(departure.cookie.clone());
        under_way.push((entity, provider, departure));
    }
    for (entity, provider, departure) in under_way.into_iter().rev() {
        let account = new_account();
        let back = choose(&departure.address, &account, Choice::ALLOW).await;
        let callback = suite.api.get(back.path(suite.api.base_url())).header("cookie", &departure.cookie);
        callback.expect(302).await;
        assert_eq!(entity.connection(provider).await.expect("connected")["account"], account);
    }
}

#[contract_test]
async fn the_last_browser_to_continue_is_the_one_that_can_come_back(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let start = entity.authorization_url("sim-basic").await;
    let first = entity.visit_from(&start, &new_account(), Choice::ALLOW).await;
    let second = entity.visit_from(&start, &new_account(), Choice::ALLOW).await;
    assert_ne!(first.cookie, second.cookie);
    first.callback().refused(400, "invalid-state").await;
    second.arrive("connected").await;
    assert_eq!(entity.connection("sim-basic").await.expect("connected")["account"], second.account);
    first.callback().refused(400, "invalid-state").await;
}

#[contract_test]
async fn opening_the_start_page_changes_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let start = entity.authorization_url("sim-basic").await;
    let visit = entity.visit_from(&start, &new_account(), Choice::ALLOW).await;
    let key = format!("STATE#{}", hash_of(&visit.state));
    let before = suite.table().item(&key, "STATE").await;
    for _ in 0..5 {
        open(&suite, &start).await;
    }
    assert_eq!(suite.table().item(&key, "STATE").await, before);
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn a_start_page_without_a_good_state_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let visit = entity.visit("sim-basic", Choice::ALLOW).await;
    let start = |provider: &str, query: &str| suite.api.get(format!("/api/public/{provider}/oauth2/start{query}"));
    let state = &visit.state;
    let long = format!("?state={}", "x".repeat(5_000));
    for query in ["", "?state=", &format!("?state={state}&state={state}"), &long] {
        start("sim-basic", query).refused(400, "invalid-request").await;
    }
    start("sim-basic", &format!("?state={state}&go=a&go=b")).refused(400, "invalid-request").await;
    for state in ["x", &"A".repeat(43), &state.to_lowercase(), "%3Cscript%3E"] {
        start("sim-basic", &format!("?state={state}")).refused(400, "invalid-state").await;
    }
    for provider in ["square", "unknown", "UPPER", "a_b"] {
        start(provider, &format!("?state={state}")).refused(400, "invalid-state").await;
    }
    visit.arrive("connected").await;
    visit.at(format!("/api/public/sim-basic/oauth2/start?state={state}")).refused(400, "invalid-state").await;

    let expired = entity.authorization_url("sim-pkce").await;
    let page = open(&suite, &expired).await;
    let key = format!("STATE#{}", hash_of(&state_of(&expired)));
    let link = link_of(&page, path(&suite, &expired));
    assert!(suite.table().set(&key, "STATE", "expiresDate", "2026-01-01T00:00:00.000Z").await);
    suite.api.get(path(&suite, &expired)).refused(400, "invalid-state").await;
    suite.api.get(link).header("cookie", cookie_of(&page)).refused(400, "invalid-state").await;
}

#[contract_test]
async fn the_outcome_names_entity_and_account_to_the_browser_that_came_back(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (visit, declined) =
        (entity.visit("sim-basic", Choice::ALLOW).await, entity.visit("square", Choice::DENY).await);
    let strong = |text: &str| format!("<strong>{text}</strong>");
    let connected = visit.arrive("connected").await.header("location").to_owned();
    let said = query(&connected);
    for (name, value) in [("entity", &entity.id), ("account", &visit.account)] {
        assert!(said.contains(&(name.to_owned(), value.clone())), "{connected}");
    }
    let address = path(&suite, &connected);
    let page = visit.at(address).expect(200).await.text();
    assert!(page.contains(&strong(&entity.id)) && page.contains(&strong(&visit.account)), "{page}");
    let denied = declined.arrive("denied").await.header("location").to_owned();
    let page = declined.at(path(&suite, &denied)).expect(200).await.text();
    assert!(page.contains(&strong(&entity.id)) && !page.contains(&declined.account), "{page}");

    // For other browsers, or with other parameters, the page names neither the entity nor the account.
    let unproven = address.split("&proof=").next().expect("it has one");
    let forged = address.replace(&visit.account, "acct-of-a-stranger");
    let moved = address.replace("sim-basic", "sim-body");
    let mut pages = vec![suite.api.get(address).expect(200).await, declined.at(address).expect(200).await];
    for address in [unproven, &forged, &moved] {
        pages.push(visit.at(address).expect(200).await);
    }
    for page in pages {
        let text = page.text();
        assert!(!text.contains(&entity.id) && !text.contains("acct-"), "{}", page.exchange);
    }
}
