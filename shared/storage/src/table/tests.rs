//! The table against a DynamoDB with prepared responses.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write as _},
    net::TcpListener,
    thread,
    time::Duration,
};

use super::{retry::TableResponse, statement::Statement, *};
use crate::aws::{Authorities, Aws, AwsSettings};

const HELD: (u16, &str) = (400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException"}"#);
const LOST: (u16, &str) = (400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}"#);
const FAILED: (u16, &str) = (500, r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}"#);
const THROTTLED: (u16, &str) =
    (400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}"#);
const IN_PROGRESS: (u16, &str) =
    (400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException"}"#);
const DONE: (u16, &str) = (200, "{}");
/// A deadline that no machine reaches.
const ENOUGH: Duration = Duration::from_secs(3_600);
const BATCH_DONE: (u16, &str) = (200, r#"{"Responses":[{}]}"#);

/// A table whose calls get these responses, in order, each on a new connection.
fn table(responses: Vec<(u16, &'static str)>) -> Table {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for (status, body) in responses {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut reader = BufReader::new(&stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line of the request");
                if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = text.trim().parse().expect("a length");
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).expect("the body");
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all(format!("{head}{body}").as_bytes()).expect("the response is sent");
        }
    });
    let text = || "test".to_owned();
    let aws = Aws::new(AwsSettings {
        region: "eu-central-1".to_owned(),
        access_key_id: text(),
        secret_access_key: text(),
        session_token: None,
        dynamodb_endpoint: Some(format!("http://{address}")),
        sqs_endpoint: None,
        secrets_manager_endpoint: None,
        s3_endpoint: None,
        authorities: Authorities::default(),
    });
    Table::new(aws.dynamodb(), "table")
}

#[tokio::test]
async fn a_write_in_conflict_with_a_transaction_is_repeated_until_decided() {
    let key = || Key::new("A", "B");
    let put = || Put::at(key(), &HashMap::<String, String>::new(), "").expect("an item").only_if(is_new());
    let writes: [Write; 3] =
        [Change::of(key()).set("a", 1_u32).only_if(exists()).into(), put().into(), Delete::of(key()).into()];
    for write in writes {
        // Without a deadline, only the first repetition is in time on every machine.
        for table in [table(vec![HELD, DONE]), table(vec![HELD, HELD, DONE]).until(Instant::now() + ENOUGH)] {
            let done = table.write(write.clone(), "writing").await.expect("decided");
            assert_eq!(done, Written::Done(()), "{write:?}");
        }
        let lost = table(vec![HELD, LOST]).write(write.clone(), "writing").await.expect("decided");
        assert_eq!(lost, Written::Lost(None), "{write:?}");
    }
}

#[tokio::test]
async fn a_write_in_conflict_with_transactions_for_too_long_is_unavailable() {
    let change = Change::of(Key::new("A", "B")).set("a", 1_u32);
    let held = table(vec![HELD; 100]).write(change, "writing").await;
    assert!(matches!(held, Err(TableError::Unavailable { doing: "writing", throttled: true, .. })), "{held:?}");
}

#[tokio::test]
async fn a_throttled_write_is_repeated_until_the_deadline_of_its_caller() {
    let change = || Change::of(Key::new("A", "B")).set("a", 1_u32).only_if(exists());
    let throttled_for_2_s = || [vec![HELD; 7], vec![DONE]].concat();
    let in_time = table(throttled_for_2_s()).until(Instant::now() + ENOUGH);
    assert_eq!(in_time.write(change(), "writing").await.expect("decided"), Written::Done(()));
    let too_late = table(throttled_for_2_s()).until(Instant::now() + Duration::from_millis(500));
    assert!(matches!(too_late.write(change(), "writing").await, Err(TableError::Unavailable { .. })));
}

#[tokio::test]
async fn a_write_with_unknown_outcome_is_repeated_only_with_a_deadline() {
    let change = || Change::of(Key::new("A", "B")).add("a", 1_u32);
    // The SDK itself repeats a failed call twice.
    let responses = || [vec![FAILED; 3], vec![DONE]].concat();
    let once = table(responses()).write(change(), "writing").await;
    assert!(matches!(once, Err(TableError::Unavailable { throttled: false, .. })), "{once:?}");
    let until = table(responses()).until(Instant::now() + ENOUGH);
    assert_eq!(until.write(change(), "writing").await.expect("decided"), Written::Done(()));
}

#[tokio::test]
async fn a_transaction_that_is_still_in_progress_has_an_unknown_outcome() {
    let writes = || Transaction::new().with(Change::of(Key::new("A", "B")).set("a", 1_u32));
    // The SDK itself repeats the call twice.
    let once = table(vec![IN_PROGRESS; 3]).write_all(writes(), "writing").await;
    assert!(matches!(once, Err(TableError::Unavailable { throttled: false, .. })), "{once:?}");
    let until = table([vec![IN_PROGRESS; 3], vec![DONE]].concat()).until(Instant::now() + ENOUGH);
    assert_eq!(until.write_all(writes(), "writing").await.expect("decided"), Written::Done(()));
}

#[tokio::test]
async fn a_batch_is_not_sent_again_after_its_callers_gave_up() {
    let change = Change::of(Key::new("A", "B")).set("a", 1_u32).only_if(exists());
    let statement = Statement::of(&change.into(), false).expect("PartiQL");
    for (refused, is_unknown) in [(THROTTLED, false), (FAILED, true)] {
        let response = table(vec![refused, BATCH_DONE]).writes.submit(statement.clone()).await.expect("a response");
        let (not_now, unknown) =
            (matches!(response, TableResponse::NotNow(_)), matches!(response, TableResponse::Unknown(_)));
        assert_eq!((not_now, unknown), (!is_unknown, is_unknown), "{response:?}");
    }
}

#[tokio::test]
async fn a_batched_write_is_repeated_while_its_caller_waits() {
    let change = || Change::of(Key::new("A", "B")).set("a", 1_u32).only_if(exists());
    let responses = vec![THROTTLED, FAILED, FAILED, BATCH_DONE];
    // Without a deadline, only the first repetition is in time on every machine.
    for table in [table(vec![FAILED, BATCH_DONE]), table(responses).until(Instant::now() + ENOUGH)] {
        assert_eq!(table.write_together(change(), "writing").await.expect("decided"), Written::Done(()));
    }
}
