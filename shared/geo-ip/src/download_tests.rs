//! Downloads: redirects, refusals, limits, and servers that stop responding.

use super::*;
use crate::testing::{Answering, Server};

fn web() -> Web {
    Web::within(AddressRules { allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")], allow_http: true })
}

fn basic() -> HeaderValue {
    HeaderValue::from_static("Basic c2VjcmV0")
}

#[tokio::test]
async fn credentials_go_to_the_first_server_only() {
    let other = Server::start(|_| Answering::ok("there")).await;
    let elsewhere = other.url("/there");
    let back = other.url("/back");
    let first = Server::start(move |request| match request.path.as_str() {
        "/same" => Answering::redirect("/other"),
        "/other" => Answering::redirect(elsewhere.as_str()),
        "/away" => Answering::redirect(back.as_str()),
        _ => Answering::ok("here"),
    })
    .await;
    assert_eq!(web().text(&first.url("/same"), Some(&basic())).await.expect("a text"), "there");
    let sent: Vec<_> = first.requests().iter().map(|request| request.header("authorization")).collect();
    assert_eq!(sent, [Some("Basic c2VjcmV0".to_owned()), Some("Basic c2VjcmV0".to_owned())]);
    assert_eq!(other.requests()[0].header("authorization"), None);
    assert_eq!(web().text(&first.url("/away"), Some(&basic())).await.expect("a text"), "there");
    assert_eq!(other.requests()[1].header("authorization"), None);
}

#[tokio::test]
async fn redirects_end_somewhere() {
    let server = Server::start(|_| Answering::redirect("/again")).await;
    let error = web().text(&server.url("/"), None).await.expect_err("no end");
    assert!(matches!(error, DownloadError::TooManyRedirects), "{error}");
    assert_eq!(server.requests().len(), 6);
    let server = Server::start(|_| Answering::redirect("file:///etc/passwd")).await;
    assert!(matches!(web().text(&server.url("/"), None).await, Err(DownloadError::Exchange(AttemptError::Blocked(_)))));
}

#[tokio::test]
async fn a_refusal_is_asked_once_and_a_broken_connection_twice() {
    for status in [401, 403, 404, 429, 500, 503] {
        let server = Server::start(move |_| Answering::status(status)).await;
        let error = web().text(&server.url("/"), None).await.expect_err("a refusal");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
    let server = Server::start(|_| Answering::nothing()).await;
    let error = web().text(&server.url("/"), None).await.expect_err("no answer");
    assert!(matches!(error, DownloadError::Exchange(AttemptError::Connect(_))), "{error}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_file_that_is_cut_off_or_too_large_is_no_download() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("served");
    let server = Server::start(|request| match request.path.as_str() {
        "/cut" => Answering::ok("0123456789").cut_after(5),
        "/cut-chunks" => Answering::ok("0123456789").chunked().cut_after(5),
        "/chunks" => Answering::ok("0123456789").chunked(),
        _ => Answering::ok("0123456789").with_header("etag", "\"e\""),
    })
    .await;
    let download = async |path: &str, limit| web().download(&server.url(path), &[], None, &file, limit).await;
    for path in ["/cut", "/cut-chunks"] {
        assert!(matches!(download(path, 10).await, Err(DownloadError::Exchange(AttemptError::Connect(_)))), "{path}");
    }
    for path in ["/", "/chunks"] {
        assert!(matches!(download(path, 9).await, Err(DownloadError::TooLarge(9))), "{path}");
        let Ok(Downloaded::File(served)) = download(path, 10).await else { panic!("{path}") };
        assert_eq!((served.size, served.sha256), (10, super::super::hash::sha256(b"0123456789")));
        assert_eq!(served.etag.is_some(), path == "/");
    }
    assert_eq!(std::fs::read(&file).expect("kept"), b"0123456789");
}

#[tokio::test]
async fn not_modified_is_an_answer_to_a_condition_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("served");
    let server = Server::start(|_| Answering::status(304)).await;
    let conditions = [(header::IF_NONE_MATCH, HeaderValue::from_static("\"e\""))];
    let asked = web().download(&server.url("/"), &conditions, None, &file, 10).await;
    assert!(matches!(asked, Ok(Downloaded::NotModified)));
    let unasked = web().download(&server.url("/"), &[], None, &file, 10).await;
    assert!(matches!(unasked, Err(DownloadError::Status(StatusCode::NOT_MODIFIED))));
    assert_eq!(server.requests()[0].header("if-none-match").as_deref(), Some("\"e\""));
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let server = Server::start(|_| Answering::ok("0123456789").silent_after(5)).await;
    let folder = tempfile::tempdir().expect("a folder");
    let limits = StreamLimits { idle: Duration::from_millis(200), ..StreamLimits::default() };
    let web = Web { limits, ..web() };
    let error = web.download(&server.url("/"), &[], None, &folder.path().join("served"), 10).await;
    assert!(matches!(error, Err(DownloadError::Exchange(AttemptError::Timeout(_)))), "{error:?}");
}

#[test]
fn each_window_must_bring_enough_bytes() {
    let rate = MinimumRate { window: Duration::from_secs(30), bytes: 1000 };
    let began = Instant::now();
    let at = |seconds| began + Duration::from_secs(seconds);
    let mut slow = Pace::new(rate, began);
    for second in 1..30 {
        slow.count(1, at(second)).expect("the window has not ended");
    }
    let text = slow.count(1, at(30)).expect_err("30 bytes in 30 seconds").to_string();
    assert!(text.contains("too slow") && text.contains("30 seconds"), "{text}");
    let mut quick = Pace::new(rate, began);
    for window in 1..=100 {
        quick.count(1000, at(30 * window)).expect("enough in each window");
    }
    assert!(quick.count(999, at(30 * 101)).is_err(), "what came before does not count");
    Pace::new(rate, began).count(1, at(29)).expect("a small answer needs no whole window");
}

#[tokio::test]
async fn a_server_that_sends_a_byte_now_and_then_is_given_up() {
    let server = Server::start(|_| Answering::ok("x".repeat(10_000)).trickled(Duration::from_millis(20))).await;
    let folder = tempfile::tempdir().expect("a folder");
    let web = Web { minimum_rate: MinimumRate { window: Duration::from_millis(200), bytes: 1000 }, ..web() };
    let error = web.download(&server.url("/"), &[], None, &folder.path().join("served"), 10_000).await;
    assert!(matches!(error, Err(DownloadError::TooSlow(_))), "{error:?}");
    assert!(matches!(web.text(&server.url("/"), None).await, Err(DownloadError::TooSlow(_))));
}
