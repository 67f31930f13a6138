//! Pages of the list of deliveries: nothing is skipped or repeated, and clients cannot forge or change cursors, or use
//! them in another list.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    delivery_list::{hook_for, id, ids, items, page, publish, whole},
    harness::{Behaviour, Entity, Receiver, Settings, Suite, Table, now, stored},
};

#[contract_test]
async fn pages_neither_skip_nor_repeat_while_new_deliveries_come(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let mut expected = publish(&entity, "booking.created", 250).await;
    expected.sort_by(|one, other| other.cmp(one));
    let before = whole(&entity, "", 100).await;
    assert_eq!(ids(&before).len(), 250);

    let stop = Arc::new(AtomicBool::new(false));
    let publisher = entity.clone();
    let stopped = Arc::clone(&stop);
    let publishing = tokio::spawn(async move {
        let mut published = 0;
        while !stopped.load(Ordering::Relaxed) {
            published += publish(&publisher, "booking.created", 4).await.len();
        }
        published
    });
    // The page size varies, but the list does not.
    let mut seen = Vec::new();
    let mut cursor = String::new();
    for limit in [1, 7, 30, 2, 100].into_iter().cycle() {
        let page = page(&entity, &format!("?limit={limit}{cursor}")).await;
        seen.extend(ids(&items(&page)));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(publishing.await.expect("it did not panic") > 0);
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "no delivery is listed twice");
    let old: BTreeSet<&String> = expected.iter().collect();
    let seen_of_old: Vec<&String> = seen.iter().filter(|id| old.contains(id)).collect();
    assert_eq!(
        seen_of_old,
        ids(&before).iter().collect::<Vec<_>>(),
        "no delivery is left out, and the order is stable"
    );
    // Identifiers are ordered by time: no later page contains a delivery newer than the first page.
    assert!(seen.is_sorted_by(|newer, older| newer > older), "{seen:?}");
}

#[contract_test]
async fn a_cursor_works_only_in_its_own_list(suite: Arc<Suite>) {
    let (entity, other, receiver) = (suite.entity().await, suite.entity().await, Receiver::start().await);
    for entity in [&entity, &other] {
        entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
        publish(entity, "booking.created", 3).await;
    }
    let filters = "type=booking.created&createdFrom=2020-01-01T00:00:00Z";
    let first = page(&entity, &format!("?limit=1&{filters}")).await;
    let cursor = first["nextCursor"].as_str().expect("there are more").to_owned();
    let second = page(&entity, &format!("?limit=1&{filters}&cursor={cursor}")).await;
    assert_ne!(items(&first), items(&second));
    // The same filters in another notation or order give the same list, and the limit is not a filter.
    let reworded = format!("?cursor={cursor}&createdFrom=2020-01-01T01:00:00.000%2B01:00&type=booking.created");
    assert_eq!(items(&page(&entity, &reworded).await).len(), 2);

    let refused = async |entity: &Entity, query: String| {
        let call = entity.get(&format!("/webhook/delivery/list?{query}"));
        let problem = call.refused(400, "invalid-cursor").await;
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.contains("without `cursor`")),
            "{query}: {problem:#}"
        );
    };
    refused(&other, format!("{filters}&cursor={cursor}")).await;
    for others in [
        "",
        "type=booking.created",
        "type=booking.cancelled&createdFrom=2020-01-01T00:00:00Z",
        "type=booking.created&createdFrom=2020-01-01T00:00:00.001Z",
        "type=booking.created&createdUntil=2020-01-01T00:00:00Z",
        "type=booking.created&createdFrom=2020-01-01T00:00:00Z&status=delivered",
        "type=booking.created&createdFrom=2020-01-01T00:00:00Z&webhookIdentifier=whk_00000000000000000000000000",
        "type=booking.created&createdFrom=2020-01-01T00:00:00Z&subject=B-1001",
        "type=booking.created&createdFrom=2020-01-01T00:00:00Z&lastHttpStatus=200",
        "type=booking.created&createdFrom=2020-01-01T00:00:00Z&lastErrorCode=dns",
    ] {
        refused(&entity, format!("{others}&cursor={cursor}")).await;
    }
    let last = cursor.len() - 1;
    let swapped = |position: usize| {
        let other = if cursor[position..].starts_with('A') { "B" } else { "A" };
        format!("{}{other}{}", &cursor[..position], &cursor[position + 1..])
    };
    for bad in [
        swapped(0),
        swapped(last / 2),
        swapped(last),
        cursor[..last].to_owned(),
        cursor[1..].to_owned(),
        cursor[..last / 2].to_owned(),
        format!("{cursor}A"),
        format!("{cursor}{cursor}"),
        format!("{cursor}%3D"),
        format!("%20{cursor}"),
        cursor.to_lowercase(),
        String::new(),
        "x".to_owned(),
        "AAAA".to_owned(),
        "e30".to_owned(),
        "%00".to_owned(),
        "%FF%FE".to_owned(),
        "..%2F..%2Fetc".to_owned(),
        "x".repeat(4_000),
        id(&items(&first)[0]),
    ] {
        refused(&entity, format!("{filters}&cursor={bad}")).await;
    }
}

/// Follows a list's cursors to the end; returns its deliveries, and the number on each page.
async fn pages(entity: &Entity, parameters: &str) -> (Vec<String>, Vec<usize>) {
    let mut found = Vec::new();
    let mut sizes = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = page(entity, &format!("?{parameters}{cursor}")).await;
        sizes.push(items(&page).len());
        found.extend(ids(&items(&page)));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (found, sizes),
        }
    }
}

#[contract_test]
async fn a_page_with_a_rare_filter_ends_early_and_later_pages_find_the_rest(suite: Arc<Suite>) {
    /// More deliveries than the service reads for one page.
    const MANY: usize = 5_000;
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let model = entity.publish(json!({})).await;
    entity.until_status(&model, &["delivered"]).await;
    let event = table.event(&stored::event_of(&model)).await.expect("it is there");
    let head = table.head(&model).await.expect("it is there");
    // Ten events per millisecond from a few minutes ago, which the sweep has already examined.
    let began = (now() - 600) * 1_000;
    let event_of = |number: usize| stored::event_id(began + i64::try_from(number / 10).expect("few"), number);
    let copied = |original: &Value, (pk, sk): (String, String), changes: &[(&str, Value)]| {
        let mut copy = original.clone();
        copy["pk"] = json!({ "S": pk });
        copy["sk"] = json!({ "S": sk });
        changes.iter().for_each(|(name, value)| copy[*name] = value.clone());
        copy
    };
    let text = |text: String| json!({ "S": text });
    // All deliveries succeed on the first attempt, except that the oldest has another type and the second has failed.
    let copies = (0..MANY).flat_map(|number| {
        let id = event_of(number);
        let delivery = stored::delivery_id(&id, 0);
        let mut changes = vec![("id", text(delivery.clone()))];
        let kind = [("type", text("booking.cancelled".to_owned()))];
        let kind = if number == 0 { &kind[..] } else { &[] };
        changes.extend_from_slice(kind);
        if number == 1 {
            changes.extend([
                ("status", text("failed".to_owned())),
                ("lastHttpStatus", json!({ "N": "503" })),
                ("webhookKey", text(format!("RECOVERABLE#{}", hook.id))),
                ("entityKey", text(format!("UNDELIVERED#{}", entity.id))),
            ]);
        }
        let head = copied(&head, stored::head_key(&delivery), &changes);
        [copied(&event, stored::event_key(&id), kind), head]
    });
    table.put_all(copies.collect::<Vec<_>>()).await;
    let [other, failed] = [0, 1].map(|number| stored::delivery_id(&event_of(number), 0));
    let of_webhook = format!("webhookIdentifier={}&", hook.id);
    for (parameters, expected, least, most) in [
        ("type=booking.cancelled".to_owned(), &other, 5, 7),
        // A page reads fewer deliveries from each of the webhook's parts of the index.
        (format!("{of_webhook}type=booking.cancelled"), &other, 5, 12),
        (format!("{of_webhook}status=failed"), &failed, 1, 1),
        // This index lists nothing else.
        ("status=failed".to_owned(), &failed, 1, 1),
        ("lastHttpStatus=503".to_owned(), &failed, 1, 1),
    ] {
        let (found, sizes) = pages(&entity, &parameters).await;
        assert_eq!(found, std::slice::from_ref(expected), "{parameters}");
        assert!((least..=most).contains(&sizes.len()), "{parameters}: a page reads a bounded number: {sizes:?}");
    }
    // A filter that matches often fills its page at once.
    for frequent in ["status=delivered", "lastHttpStatus=200"] {
        assert_eq!(items(&page(&entity, &format!("?{frequent}&limit=100")).await).len(), 100, "{frequent}");
    }
}

/// Copies a stored event this many times, starting at this time, with a millisecond between copies.
async fn copied_events(table: &Table, model: &str, began: i64, count: usize) {
    let event = table.event(&stored::event_of(model)).await.expect("it is there");
    let copies = (0..count).map(|number| {
        let id = stored::event_id(began + i64::try_from(number).expect("few"), number);
        let (pk, sk) = stored::event_key(&id);
        let mut copy = event.clone();
        copy["pk"] = json!({ "S": pk });
        copy["sk"] = json!({ "S": sk });
        copy
    });
    table.put_all(copies.collect::<Vec<_>>()).await;
}

/// The sweep has not examined the events yet, so their deliveries may not be in any index.
#[contract_test]
async fn a_page_behind_many_new_events_has_what_the_indexes_show(suite: Arc<Suite>) {
    /// More events than a page examines one by one.
    const MANY: usize = 3_000;
    const QUIET: usize = 30;
    let settings = Settings::default().with("SWEEP_INTERVAL", "1h");
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    let entity = Entity::new(&setup.api, "burst".to_owned()).await;
    let receiver = Receiver::start().await;
    // A delivery that waits for several hours is in the index immediately.
    let later = Behaviour::answer(503, &[("Retry-After", "36000")], "");
    let quiet = hook_for(&entity, "booking.cancelled", &receiver.on("/quiet", [later])).await;
    let mut expected: Vec<String> = publish(&entity, "booking.cancelled", QUIET).await;
    for delivery in &expected {
        entity.until_status(delivery, &["retrying"]).await;
    }
    expected.sort_by(|one, other| other.cmp(one));
    hook_for(&entity, "booking.created", &receiver.on("/busy", [Behaviour::status(200)])).await;
    let model = publish(&entity, "booking.created", 1).await.remove(0);
    entity.until_status(&model, &["delivered"]).await;
    copied_events(&Table::of(&entity.api().env), &model, now() * 1_000, MANY).await;
    let of_webhook = format!("webhookIdentifier={}", quiet.id);
    for filters in [of_webhook.clone(), format!("{of_webhook}&status=retrying"), "status=retrying".to_owned()] {
        setup.table.metered();
        let first = page(&entity, &format!("?{filters}")).await;
        assert_eq!(ids(&items(&first)), expected[..25], "{filters}");
        let calls = setup.table.metered();
        let reads: f64 = calls.iter().map(|call| call.reads).sum();
        println!("a page of `{filters}` behind {MANY} new events: {} calls, {reads} read units", calls.len());
        assert!((0.5..250.0).contains(&reads), "{filters}: {reads}");
    }
    // The last pages may repeat a delivery, but omit none.
    let (found, _) = pages(&entity, &of_webhook).await;
    assert_eq!(found.iter().collect::<BTreeSet<_>>(), expected.iter().collect());
    let (found, _) = pages(&entity, "status=pending").await;
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), MANY, "deliveries that no index has");
    assert!(setup.bundle.stop().await.success());
}

/// The number of a stranger's deliveries must not be visible.
#[contract_test]
async fn a_strangers_webhook_is_listed_like_one_that_does_not_exist(suite: Arc<Suite>) {
    /// More deliveries than the service reads for one page.
    const MANY: usize = 1_000;
    let (owner, stranger) = (suite.entity().await, suite.entity().await);
    let receiver = Receiver::start().await;
    let hook = owner.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let model = owner.publish(json!({})).await;
    owner.until_status(&model, &["delivered"]).await;
    let table = suite.table();
    let head = table.head(&model).await.expect("it is there");
    // Another test stores ten-minute-old events with the same numbers.
    let began = (now() - 1_200) * 1_000;
    let copies = (0..MANY).map(|number| {
        let id = stored::delivery_id(&stored::event_id(began, number), 0);
        let (pk, sk) = stored::head_key(&id);
        let mut copy = head.clone();
        for (name, value) in [("pk", pk), ("sk", sk), ("id", id)] {
            copy[name] = json!({ "S": value });
        }
        copy
    });
    let copies: Vec<_> = copies.collect();
    let expected: BTreeSet<_> =
        copies.iter().map(|copy| copy["id"]["S"].to_string()).chain([json!(model).to_string()]).collect();
    table.put_all(copies).await;
    let assert_whole = async || {
        let listed = whole(&owner, &format!("webhookIdentifier={}", hook.id), 100).await;
        let ids: BTreeSet<_> = listed.iter().map(|delivery| delivery["id"].to_string()).collect();
        let missing: Vec<_> = expected.difference(&ids).collect();
        assert!(
            missing.is_empty() && listed.len() == expected.len(),
            "{} are listed, without {missing:?}",
            listed.len()
        );
    };
    for filters in ["", "&status=delivered", "&status=delivered,failed", "&limit=100"] {
        let listed = page(&stranger, &format!("?webhookIdentifier={}{filters}", hook.id)).await;
        assert_eq!(listed, json!({ "items": [] }), "{filters}");
    }
    assert_whole().await;
    // A removed webhook has no item, but its owner can still see its deliveries.
    owner.remove(&hook.id).expect(200).await;
    assert_whole().await;
}
