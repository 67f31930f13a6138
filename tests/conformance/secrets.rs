//! The Secrets Manager operations that functions, operators and rotations use.
//! <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_Operations.html>

use aws_sdk_secretsmanager::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::get_secret_value::GetSecretValueOutput,
    types::{Filter, FilterNameStringType},
};
use base::{SystemRandom, random::uuid};

use crate::side::{Side, cases};

cases![
    a_secret_is_created_once_and_read_by_name_and_by_arn,
    a_secret_that_is_not_there_is_not_found,
    a_secret_without_a_value_has_none_until_one_is_put,
    a_new_value_is_current_and_the_former_one_is_the_previous,
    a_pending_version_is_read_by_its_label_and_by_its_name,
    a_rotation_moves_the_label_of_the_current_version,
    a_label_that_another_version_has_moves_only_away_from_it,
    a_label_is_taken_away,
    a_secret_is_described_with_the_labels_of_its_versions,
    all_secrets_are_listed,
    a_secret_that_is_marked_for_deletion_is_refused,
    a_secret_is_deleted_at_once_and_its_name_is_free,
    a_window_of_recovery_has_its_bounds;
    a_version_that_is_put_again_is_the_same_and_never_another: "ministack overwrites a version that is put again",
    a_token_has_its_length: "ministack takes tokens of any length",
    the_current_label_cannot_be_taken_away: "ministack takes it away",
    a_version_and_a_label_of_another_contradict_each_other: "ministack looks at the version alone",
    a_label_that_is_put_moves: "ministack leaves it at the former version as well",
    a_rotation_needs_a_function: "ministack makes a copy of the value the current version, and calls no function",
];

fn code<T: std::fmt::Debug, E: ProvideErrorMetadata, R>(outcome: Result<T, SdkError<E, R>>) -> String {
    match outcome {
        Err(SdkError::ServiceError(refused)) => refused.err().code().unwrap_or_default().to_owned(),
        Err(_) => "no answer".to_owned(),
        Ok(answer) => panic!("the call is not refused: {answer:?}"),
    }
}

/// Creates a secret with this value; returns its name.
async fn secret(side: &Side, client: &Client, value: &str) -> String {
    let name = side.unique("secret");
    client.create_secret().name(&name).secret_string(value).send().await.expect("a new name");
    name
}

async fn get(client: &Client, name: &str) -> GetSecretValueOutput {
    client.get_secret_value().secret_id(name).send().await.expect("it is there")
}

async fn labelled(client: &Client, name: &str, label: &str) -> Option<String> {
    let got = client.get_secret_value().secret_id(name).version_stage(label).send().await;
    got.ok().and_then(|got| got.secret_string)
}

async fn put(client: &Client, name: &str, value: &str, label: &str) -> String {
    let id = uuid(&SystemRandom);
    let put = client.put_secret_value().secret_id(name).client_request_token(&id).secret_string(value);
    let made = put.version_stages(label).send().await.expect("a new version");
    assert_eq!(made.version_id(), Some(id.as_str()));
    assert_eq!(made.version_stages(), [label]);
    id
}

async fn a_secret_is_created_once_and_read_by_name_and_by_arn(side: Side) {
    let client = side.secrets();
    let name = side.unique("secret");
    let create = || client.create_secret().name(&name).secret_string(r#"{"a":"ü\n"}"#);
    let made = create().send().await.expect("a new name");
    let arn = made.arn().expect("an ARN");
    assert!(arn.starts_with(&format!("arn:aws:secretsmanager:us-east-1:000000000000:secret:{name}-")), "{arn}");
    for id in [&name, arn] {
        let got = get(&client, id).await;
        assert_eq!(got.secret_string(), Some(r#"{"a":"ü\n"}"#));
        assert_eq!((got.name(), got.arn()), (Some(name.as_str()), Some(arn)));
        assert_eq!((got.version_id(), got.version_stages()), (made.version_id(), &["AWSCURRENT".to_owned()][..]));
        assert!(got.created_date().is_some());
    }
    assert_eq!(code(create().send().await), "ResourceExistsException");
}

async fn a_secret_that_is_not_there_is_not_found(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let absent = side.unique("absent");
    let not_found = "ResourceNotFoundException";
    assert_eq!(code(client.get_secret_value().secret_id(&absent).send().await), not_found);
    assert_eq!(code(client.describe_secret().secret_id(&absent).send().await), not_found);
    assert_eq!(code(client.put_secret_value().secret_id(&absent).secret_string("1").send().await), not_found);
    let arn = format!("arn:aws:secretsmanager:us-east-1:000000000000:secret:{absent}-AbCdEf");
    assert_eq!(code(client.get_secret_value().secret_id(arn).send().await), not_found);
    let of_version = client.get_secret_value().secret_id(&name).version_id(uuid(&SystemRandom));
    assert_eq!(code(of_version.send().await), not_found);
    assert_eq!(code(client.get_secret_value().secret_id(&name).version_stage("AWSPENDING").send().await), not_found);
}

async fn a_secret_without_a_value_has_none_until_one_is_put(side: Side) {
    let client = side.secrets();
    let name = side.unique("secret");
    client.create_secret().name(&name).send().await.expect("a new name");
    client.put_secret_value().secret_id(&name).secret_string("1").send().await.expect("it is there");
    assert_eq!(get(&client, &name).await.secret_string(), Some("1"));
}

async fn a_new_value_is_current_and_the_former_one_is_the_previous(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let second = put(&client, &name, "2", "AWSCURRENT").await;
    put(&client, &name, "3", "AWSCURRENT").await;
    assert_eq!(get(&client, &name).await.secret_string(), Some("3"));
    let previous = client.get_secret_value().secret_id(&name).version_stage("AWSPREVIOUS").send().await.expect("there");
    assert_eq!((previous.version_id(), previous.secret_string()), (Some(second.as_str()), Some("2")));
}

async fn a_pending_version_is_read_by_its_label_and_by_its_name(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let pending = put(&client, &name, "2", "AWSPENDING").await;
    assert_eq!(get(&client, &name).await.secret_string(), Some("1"));
    assert_eq!(labelled(&client, &name, "AWSPENDING").await.as_deref(), Some("2"));
    let by_name = client.get_secret_value().secret_id(&name).version_id(&pending).send().await.expect("there");
    assert_eq!((by_name.secret_string(), by_name.version_stages()), (Some("2"), &["AWSPENDING".to_owned()][..]));
}

async fn a_rotation_moves_the_label_of_the_current_version(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let first = get(&client, &name).await.version_id().expect("a name").to_owned();
    let second = put(&client, &name, "2", "AWSPENDING").await;
    let finish = || {
        let change = client.update_secret_version_stage().secret_id(&name).version_stage("AWSCURRENT");
        change.move_to_version_id(&second).remove_from_version_id(&first).send()
    };
    finish().await.expect("moved");
    for (label, value) in [("AWSCURRENT", "2"), ("AWSPREVIOUS", "1"), ("AWSPENDING", "2")] {
        assert_eq!(labelled(&client, &name, label).await.as_deref(), Some(value), "{label}");
    }
    assert_eq!(get(&client, &name).await.version_id(), Some(second.as_str()));
}

async fn a_label_that_another_version_has_moves_only_away_from_it(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let [second, third] = [put(&client, &name, "2", "TWO").await, put(&client, &name, "3", "THREE").await];
    let change = |from: Option<&String>| {
        let change = client.update_secret_version_stage().secret_id(&name).version_stage("AWSCURRENT");
        change.move_to_version_id(&second).set_remove_from_version_id(from.cloned()).send()
    };
    assert_eq!(code(change(None).await), "InvalidParameterException");
    assert_eq!(code(change(Some(&third)).await), "InvalidParameterException");
    assert_eq!(code(change(Some(&uuid(&SystemRandom))).await), "ResourceNotFoundException");
    let neither = client.update_secret_version_stage().secret_id(&name).version_stage("TWO").send().await;
    assert_eq!(code(neither), "InvalidParameterException");
    assert_eq!(get(&client, &name).await.secret_string(), Some("1"));
    let to_a_free = client.update_secret_version_stage().secret_id(&name).version_stage("FREE");
    to_a_free.move_to_version_id(&third).send().await.expect("no version has it");
    assert_eq!(labelled(&client, &name, "FREE").await.as_deref(), Some("3"));
}

async fn a_label_is_taken_away(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let pending = put(&client, &name, "2", "AWSPENDING").await;
    let take = || {
        let change = client.update_secret_version_stage().secret_id(&name).version_stage("AWSPENDING");
        change.remove_from_version_id(&pending).send()
    };
    take().await.expect("taken away");
    assert_eq!(labelled(&client, &name, "AWSPENDING").await, None);
    assert_eq!(code(take().await), "InvalidParameterException", "the version no longer has the label");
}

async fn a_secret_is_described_with_the_labels_of_its_versions(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let pending = put(&client, &name, "2", "AWSPENDING").await;
    let described = client.describe_secret().secret_id(&name).send().await.expect("there");
    assert_eq!(described.name(), Some(name.as_str()));
    assert!(described.created_date().is_some() && described.last_changed_date().is_some());
    assert_eq!(described.deleted_date(), None);
    let labels = described.version_ids_to_stages().expect("two versions");
    assert_eq!(labels.len(), 2);
    assert_eq!(labels[&pending], ["AWSPENDING"]);
    assert_eq!(labels[get(&client, &name).await.version_id().expect("a name")], ["AWSCURRENT"]);
}

async fn all_secrets_are_listed(side: Side) {
    let client = side.secrets();
    let one = secret(&side, &client, "1").await;
    let two = secret(&side, &client, "2").await;
    client.delete_secret().secret_id(&two).recovery_window_in_days(7).send().await.expect("there");
    let list = async |deleted: bool| {
        let mut pages = client.list_secrets().max_results(2).include_planned_deletion(deleted).into_paginator().send();
        let mut names = Vec::new();
        while let Some(page) = pages.next().await {
            names
                .extend(page.expect("a page").secret_list().iter().filter_map(|entry| entry.name().map(str::to_owned)));
        }
        (names.contains(&one), names.contains(&two))
    };
    assert_eq!(list(false).await, (true, false));
    assert_eq!(list(true).await, (true, true));
    let named = async |beginning: &str| {
        let filter = Filter::builder().key(FilterNameStringType::Name).values(beginning).build();
        let page = client.list_secrets().filters(filter).send().await.expect("a page");
        page.secret_list().iter().any(|entry| entry.name() == Some(&one))
    };
    assert_eq!((named(&one[..one.len() - 1]).await, named("no-secret-begins-so").await), (true, false));
}

async fn a_secret_that_is_marked_for_deletion_is_refused(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let delete = || client.delete_secret().secret_id(&name).recovery_window_in_days(7).send();
    let deleted = delete().await.expect("there");
    assert!(deleted.deletion_date().is_some());
    let invalid = "InvalidRequestException";
    assert_eq!(code(client.get_secret_value().secret_id(&name).send().await), invalid);
    assert_eq!(code(client.put_secret_value().secret_id(&name).secret_string("2").send().await), invalid);
    assert_eq!(code(delete().await), invalid);
    let described = client.describe_secret().secret_id(&name).send().await.expect("there");
    assert!(described.deleted_date().is_some());
}

async fn a_secret_is_deleted_at_once_and_its_name_is_free(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    put(&client, &name, "2", "AWSPENDING").await;
    let delete = client.delete_secret().secret_id(&name).force_delete_without_recovery(true);
    delete.send().await.expect("there");
    assert_eq!(code(client.get_secret_value().secret_id(&name).send().await), "ResourceNotFoundException");
    client.create_secret().name(&name).secret_string("3").send().await.expect("the name is free");
    assert_eq!(get(&client, &name).await.secret_string(), Some("3"));
    assert_eq!(labelled(&client, &name, "AWSPENDING").await, None);
}

async fn a_window_of_recovery_has_its_bounds(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    for days in [6, 31] {
        let delete = client.delete_secret().secret_id(&name).recovery_window_in_days(days);
        assert_eq!(code(delete.send().await), "InvalidParameterException", "{days}");
    }
    let both = client.delete_secret().secret_id(&name).recovery_window_in_days(7).force_delete_without_recovery(true);
    assert_eq!(code(both.send().await), "InvalidParameterException");
    assert_eq!(get(&client, &name).await.secret_string(), Some("1"));
}

async fn a_version_that_is_put_again_is_the_same_and_never_another(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let id = put(&client, &name, "2", "AWSCURRENT").await;
    put(&client, &name, "3", "AWSCURRENT").await;
    let again =
        |value: &str| client.put_secret_value().secret_id(&name).client_request_token(&id).secret_string(value).send();
    let same = again("2").await.expect("the same request");
    assert_eq!((same.version_id(), same.version_stages()), (Some(id.as_str()), &["AWSPREVIOUS".to_owned()][..]));
    assert_eq!(get(&client, &name).await.secret_string(), Some("3"), "it changes nothing");
    assert_eq!(code(again("other").await), "ResourceExistsException");
    let create = |name: &str, value: &str| {
        client.create_secret().name(name).client_request_token(&id).secret_string(value).send()
    };
    let other = side.unique("secret");
    let made = create(&other, "1").await.expect("a new name");
    assert_eq!(create(&other, "1").await.expect("the same request").version_id(), made.version_id());
    assert_eq!(code(create(&other, "2").await), "ResourceExistsException");
}

async fn a_token_has_its_length(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    for token in ["x".repeat(31), "x".repeat(65)] {
        let put = client.put_secret_value().secret_id(&name).client_request_token(token).secret_string("2");
        assert_eq!(code(put.send().await), "InvalidParameterException");
    }
    assert_eq!(code(client.put_secret_value().secret_id(&name).send().await), "InvalidRequestException");
}

async fn the_current_label_cannot_be_taken_away(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let current = get(&client, &name).await.version_id().expect("a name").to_owned();
    let take = client.update_secret_version_stage().secret_id(&name).version_stage("AWSCURRENT");
    assert_eq!(code(take.remove_from_version_id(current).send().await), "InvalidParameterException");
    assert_eq!(get(&client, &name).await.secret_string(), Some("1"));
}

async fn a_version_and_a_label_of_another_contradict_each_other(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let pending = put(&client, &name, "2", "AWSPENDING").await;
    let both =
        |label: &str| client.get_secret_value().secret_id(&name).version_id(&pending).version_stage(label).send();
    assert_eq!(both("AWSPENDING").await.expect("the same").secret_string(), Some("2"));
    assert_eq!(code(both("AWSCURRENT").await), "InvalidRequestException");
}

async fn a_label_that_is_put_moves(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let first = put(&client, &name, "2", "AWSPENDING").await;
    put(&client, &name, "3", "AWSPENDING").await;
    assert_eq!(labelled(&client, &name, "AWSPENDING").await.as_deref(), Some("3"));
    let former = client.get_secret_value().secret_id(&name).version_id(&first).send().await.expect("kept");
    assert_eq!((former.secret_string(), former.version_stages().len()), (Some("2"), 0));
}

async fn a_rotation_needs_a_function(side: Side) {
    let client = side.secrets();
    let name = secret(&side, &client, "1").await;
    let before = get(&client, &name).await.version_id().map(str::to_owned);
    assert_eq!(code(client.rotate_secret().secret_id(&name).send().await), "InvalidRequestException");
    assert_eq!(get(&client, &name).await.version_id(), before.as_deref());
}
