//! Valid and invalid files from providers: only the valid ones are published.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use contract_test::contract_test;
use fakes::update_server::{ACCOUNT, LICENCE_KEY, archive, gzip, md5, sha256, tar};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{
    Api, Behaviour, LONG, Settings, Suite, UpdateServer,
    geo_ip::{Files, call, database, database_of, day, files, folder, maxmind, published, task_result},
    invocation, until,
};

/// MaxMind's editions: the second release's fault, and a part of the message about it.
const MAXMIND: [(&str, &str); 8] = [
    ("WrongChecksum", "file's checksum does not match the provider's"),
    ("FlippedBit", "file's checksum does not match the provider's"),
    ("Truncated", "damaged"),
    ("Older", "is not newer than the published build"),
    ("Future", "is in the future"),
    ("OtherType", "the database type is `SomethingElse`, but `OtherType` was expected"),
    ("TwoDatabases", "2 databases"),
    ("LeadsOut", "a name that leads outside the archive"),
];
/// Editions at a plain address: the fault, a part of the message about it, and the number of requests for the file.
const PLAIN: [(&str, &str, usize); 9] = [
    ("WrongSha256", "file's checksum does not match the provider's", 1),
    ("CutOff", "the connection broke before the response was complete", 1),
    ("NoAnswer", "the connection broke before the server answered", 2),
    ("Bomb", "larger than", 1),
    ("Status401", "refused the credentials, or none are configured (status 401)", 1),
    ("Status403", "refused the credentials, or none are configured (status 403)", 1),
    ("Status404", "does not have the file (status 404)", 1),
    ("Status429", "download limit is reached (status 429)", 1),
    ("Status500", "the server failed (status 500)", 1),
];

/// Updates like the daily schedule, which allows minutes for all the editions rather than the seconds of a call over
/// HTTP. Returns whether the update succeeded, and a line about each edition.
async fn scheduled(api: &Api) -> (bool, String) {
    let schedule = json!({ "source": "aws.events", "detail-type": "Scheduled Event", "detail": {} });
    let invoked = invocation(&api.env, "geo-ip-update", schedule.to_string()).send().await;
    let report: Value = invoked.expect("it can be invoked").json().await.expect("the report is JSON");
    let message = report["message"].as_str().unwrap_or_else(|| panic!("a report has a message: {report}"));
    (report["success"] == true, message.to_owned())
}

/// Calls the task until no edition has run out of its share of the call's 24 seconds, as on a slow machine. The server
/// then knows only the requests of the last call.
async fn in_time(api: &Api, server: &UpdateServer, query: &str) -> (bool, String) {
    until("every edition has enough time", LONG, async || {
        server.forget();
        let outcome = task_result(&call(api, query).await);
        (!outcome.1.contains("the update ran out of time")).then_some(outcome)
    })
    .await
}

fn path(edition: &str) -> String {
    format!("/files/{edition}.mmdb.gz")
}

fn plain(edition: &str, server: &UpdateServer) -> Value {
    json!({ "edition": edition, "source": "url", "url": server.url(&path(edition)) })
}

fn configuration(server: &UpdateServer) -> Value {
    let mut editions = vec![maxmind("Right", server), maxmind("Redirected", server), plain("NotModified", server)];
    editions.extend(MAXMIND.iter().map(|(edition, _)| maxmind(edition, server)));
    editions.push(maxmind("WrongKey", server));
    for (edition, ..) in PLAIN {
        let mut entry = plain(edition, server);
        if edition == "WrongSha256" {
            entry["sha256Url"] = server.url("/files/WrongSha256.sha256").into();
        }
        editions.push(entry);
    }
    json!({ "editions": editions })
}

fn names() -> Vec<&'static str> {
    let wrong = MAXMIND.iter().map(|(edition, _)| *edition).chain(PLAIN.iter().map(|(edition, ..)| *edition));
    ["Right", "Redirected", "NotModified", "WrongKey"].into_iter().chain(wrong).collect()
}

fn of_maxmind(edition: &str) -> bool {
    ["Right", "Redirected", "WrongKey"].contains(&edition) || MAXMIND.iter().any(|(name, _)| *name == edition)
}

/// The line in the message about each edition.
fn lines(message: &str) -> BTreeMap<&'static str, String> {
    let mut starts: Vec<_> =
        names().into_iter().filter_map(|name| Some((message.find(&format!("{name}: "))?, name))).collect();
    starts.sort_unstable();
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([message.len()]);
    starts.iter().zip(ends).map(|((start, name), end)| (*name, message[*start..end].to_owned())).collect()
}

/// The number of requests for an edition's file.
fn downloads(server: &UpdateServer, edition: &str) -> usize {
    let path = if of_maxmind(edition) { UpdateServer::download(edition) } else { path(edition) };
    server.received(&path).len()
}

fn first_release(server: &UpdateServer) {
    for name in names() {
        let database = database(name, 8);
        if of_maxmind(name) {
            server.offer(name, &day(8), &database);
        } else {
            server.serve(&path(name), gzip(&database));
        }
    }
    server.serve("/files/WrongSha256.sha256", format!("{}  a.gz\n", sha256(&gzip(&database("WrongSha256", 8)))));
}

/// Offers the second release, which is valid for a few editions.
fn second_release(server: &UpdateServer, other: &UpdateServer) {
    let offer_archive = |name: &str, days, database: &[u8], packed: Vec<u8>| {
        server.offer_archive(name, &day(days), &md5(database), packed);
    };
    server.offer("Right", &day(2), &database("Right", 2));
    let redirected = database("Redirected", 2);
    server.offer("Redirected", &day(2), &redirected);
    other.serve("/elsewhere", archive("Redirected", &redirected));
    let elsewhere = other.url("/elsewhere");
    server.instead(&UpdateServer::download("Redirected"), [Behaviour::answer(302, &[("Location", &elsewhere)], "")]);

    for (name, _) in MAXMIND {
        let good = database(name, 2);
        match name {
            "WrongChecksum" => offer_archive(name, 2, b"something else", archive(name, &good)),
            "FlippedBit" => {
                let mut flipped = good.clone();
                flipped[good.len() / 2] ^= 1;
                offer_archive(name, 2, &good, archive(name, &flipped));
            }
            "Truncated" => {
                let whole = archive(name, &good);
                offer_archive(name, 2, &good, whole[..whole.len() / 2].to_vec());
            }
            "Older" => server.offer(name, &day(9), &database(name, 9)),
            "Future" => server.offer(name, &day(2), &database(name, -3)),
            "OtherType" => {
                let other = database("SomethingElse", 2);
                offer_archive(name, 2, &other, archive(name, &other));
            }
            "TwoDatabases" => {
                offer_archive(name, 2, &good, gzip(&tar(&[("a/one.mmdb", &good), ("a/two.mmdb", &good)])));
            }
            _ => offer_archive(name, 2, &good, gzip(&tar(&[("../../escaped.mmdb", &good)]))),
        }
    }
    server.offer("WrongKey", &day(2), &database("WrongKey", 2));

    for (name, ..) in PLAIN {
        let good = gzip(&database(name, 2));
        server.serve(&path(name), good.clone());
        let instead = match name {
            "WrongSha256" => {
                server.serve("/files/WrongSha256.sha256", sha256(b"something else"));
                continue;
            }
            // The file has 400 MB of zeros, in 16-MB members.
            "Bomb" => {
                server.serve(&path(name), gzip(&vec![0; 16 << 20]).repeat(25));
                continue;
            }
            "CutOff" => Behaviour::truncated_body(200),
            "NoAnswer" => {
                server.instead(&path(name), [Behaviour::close(), Behaviour::close()]);
                continue;
            }
            status => Behaviour::status(status.trim_start_matches("Status").parse().expect("a status")),
        };
        server.instead(&path(name), [instead]);
    }
}

#[contract_test]
async fn only_valid_databases_are_published_and_every_fault_is_explained(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    let other = UpdateServer::start().await;
    first_release(&server);
    let secrets = [("geo-ip", configuration(&server))];
    let (bundle, api, _permit) = suite.other_bundle_with(Settings::default(), &secrets).await;

    a_dry_run_changes_nothing(&api, &server, "", "the first").await;
    runs_at_once_all_succeed(&api, &server).await;
    a_published_release_is_not_downloaded_again(&api, &server).await;
    second_release(&server, &other);
    only_valid_databases_are_published(&api, &server, &other).await;
    assert!(bundle.stop().await.success());
}

async fn a_dry_run_changes_nothing(api: &Api, server: &UpdateServer, query: &str, word: &str) {
    let before = files(&folder(api));
    let (success, message) = in_time(api, server, query).await;
    assert!(success, "{message}");
    for (name, line) in lines(&message) {
        assert!(line.contains("would publish build") && line.contains(word), "{name}: {line}");
    }
    assert_eq!(files(&folder(api)), before, "a dry run changes nothing");
}

async fn runs_at_once_all_succeed(api: &Api, server: &UpdateServer) {
    server.forget();
    // Slow enough for the other run to begin.
    let slow = Behaviour::answer(200, &[], archive("Right", &database("Right", 8))).after(Duration::from_millis(500));
    server.instead(&UpdateServer::download("Right"), [slow]);
    let outcomes = join_all((0..2).map(|_| scheduled(api))).await;
    assert!(outcomes.iter().all(|(success, _)| *success), "{outcomes:#?}");
    let published = files(&folder(api));
    let all: Vec<_> = outcomes.iter().map(|(_, message)| lines(message)).collect();
    for name in names() {
        let count =
            all.iter().filter(|lines| lines[name].contains("published build") && lines[name].contains("the first"));
        assert_eq!(count.count(), 1, "{name}: {outcomes:#?}");
        assert_eq!(released(&published, name, 8), database(name, 8), "{name}");
    }
}

/// An edition's published release; fails unless it was built on that day.
fn released(files: &Files, edition: &str, days_ago: i64) -> Vec<u8> {
    let pointer = &files[&PathBuf::from(format!("local/{edition}/current.json"))];
    let pointer: Value = serde_json::from_slice(pointer).expect("a pointer is JSON");
    assert_eq!(pointer["current"]["buildDate"], day(days_ago), "{pointer:#}");
    published(files, edition).expect("there is a pointer")
}

async fn a_published_release_is_not_downloaded_again(api: &Api, server: &UpdateServer) {
    let before = files(&folder(api));
    for query in ["?live=true", "?live=false"] {
        let (success, message) = in_time(api, server, query).await;
        assert!(success, "{message}");
        for (name, line) in lines(&message) {
            assert!(line.contains(&format!("is up to date: build {}", day(8))), "{line}");
            // At a plain address, the file is requested and reported as unchanged; a checksum file makes this request
            // unnecessary.
            let asked = usize::from(!of_maxmind(name) && name != "WrongSha256");
            assert_eq!(downloads(server, name), asked, "{name}");
        }
    }
    assert_eq!(files(&folder(api)), before);
}

async fn only_valid_databases_are_published(api: &Api, server: &UpdateServer, other: &UpdateServer) {
    let store = folder(api);
    let before = files(&store);
    server.forget();
    server.refuse("WrongKey");
    let (success, message) = scheduled(api).await;
    assert!(!success, "{message}");
    let after = files(&store);
    let lines = lines(&message);

    for name in ["Right", "Redirected"] {
        assert!(lines[name].contains("published build"), "{}", lines[name]);
        assert!(lines[name].contains(&format!("was {}", day(8))), "{}", lines[name]);
        assert_eq!(released(&after, name, 2), database(name, 2), "{name}");
        assert_eq!(downloads(server, name), 1, "{name}");
    }
    assert!(!server.received(&UpdateServer::download("Redirected"))[0].header("authorization").is_empty());
    let elsewhere = other.received("/elsewhere");
    assert_eq!(elsewhere.len(), 1);
    assert_eq!(elsewhere[0].header("authorization"), "", "the credentials are sent to the provider only");
    assert!(lines["NotModified"].contains("is up to date"), "{}", lines["NotModified"]);
    assert!(!server.received(&path("NotModified"))[0].header("if-none-match").is_empty());
    assert!(lines["WrongKey"].contains("status 401"), "{}", lines["WrongKey"]);
    assert_eq!((server.metadata_requests("WrongKey"), downloads(server, "WrongKey")), (1, 0));

    for (name, expected) in MAXMIND {
        assert!(lines[name].contains(expected), "{}", lines[name]);
        assert_eq!((server.metadata_requests(name), downloads(server, name)), (1, 1), "{name}");
    }
    for (name, expected, count) in PLAIN {
        assert!(lines[name].contains(expected), "{}", lines[name]);
        assert_eq!(downloads(server, name), count, "{name}");
    }
    let others = |files: &Files| {
        let published = ["Right", "Redirected"].map(|name| Path::new("local").join(name));
        let mut files = files.clone();
        files.retain(|path, _| !published.iter().any(|folder| path.starts_with(folder)));
        files
    };
    assert_eq!(others(&after), others(&before), "an invalid release changes no file");
    assert!(!store.join("../escaped.mmdb").exists() && !store.join("escaped.mmdb").exists());
    for secret in [LICENCE_KEY, ACCOUNT] {
        assert!(!message.contains(secret), "{message}");
    }
}

/// After ten seconds of silence, the slow download exceeds the time limit for a call over HTTP.
#[contract_test]
async fn servers_that_take_too_long_change_nothing_and_are_explained(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    let editions = ["Silent", "Trickling"];
    for name in editions {
        server.serve(&path(name), gzip(&database(name, 8)));
    }
    let configuration = json!({ "editions": editions.map(|name| plain(name, &server)) });
    let (bundle, api, _permit) = suite.other_bundle_with(Settings::default(), &[("geo-ip", configuration)]).await;
    let (success, message) = task_result(&call(&api, "?live=true").await);
    assert!(success, "{message}");
    let before = files(&folder(&api));
    server.forget();
    server.instead(&path("Silent"), [Behaviour::hang()]);
    server.instead(&path("Trickling"), [Behaviour::trickled_body(200, Duration::from_secs(1))]);
    let (success, message) = task_result(&call(&api, "?live=true").await);
    assert!(!success, "{message}");
    let (silent, trickling) = message.split_once("; Trickling: ").expect("a line about each");
    assert!(silent.contains("did not begin to answer in time"), "{message}");
    assert!(trickling.contains("the update ran out of time"), "{message}");
    assert_eq!(editions.map(|name| downloads(&server, name)), [1, 1]);
    assert_eq!(files(&folder(&api)), before, "an interrupted download changes no file");
    assert!(bundle.stop().await.success());
}

/// The month that contains a day, and the month before it, formatted as `2026-11`.
fn month_before(day: &str) -> [String; 2] {
    let (year, month): (u32, u32) = (day[..4].parse().expect("a year"), day[5..7].parse().expect("a month"));
    let before = if month > 1 { format!("{year}-{:02}", month - 1) } else { format!("{}-12", year - 1) };
    [day[..7].to_owned(), before]
}

#[contract_test]
async fn files_are_read_as_other_tools_and_servers_write_them(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    // This type is not a valid edition name.
    let kind = "DBIP-Location-ISP (compat=Enterprise)";
    server.serve("/files/isp.mmdb.gz", gzip(&database(kind, 2)));
    // An archive created on macOS, and a BSD checksum file that covers several files.
    let mac = database("Mac", 2);
    let side: &[u8] = b"attributes";
    let packed = gzip(&tar(&[("._Mac.mmdb", side), ("__MACOSX/Mac.mmdb", side), ("Mac/Mac.mmdb", &mac)]));
    let sums = format!("SHA256 (other) = {}\nSHA256 (Mac.tar.gz) = {}\n", sha256(side), sha256(&packed).to_uppercase());
    server.serve("/files/Mac.tar.gz", packed);
    server.serve("/files/SHA256SUMS", sums);
    // The current month's file is missing, for which S3 returns 403. A new month may begin during the test.
    let [this, last] = month_before(&day(0));
    server.instead(&format!("/free/dbip-asn-lite-{this}.mmdb.gz"), vec![Behaviour::status(403); 10]);
    server.serve(&format!("/free/dbip-asn-lite-{last}.mmdb.gz"), gzip(&database("DBIP-ASN-Lite", 2)));
    let configuration = json!({ "editions": [
        { "edition": "isp", "source": "url", "url": server.url("/files/isp.mmdb.gz"), "databaseType": kind },
        {
            "edition": "Mac", "source": "url", "url": server.url("/files/Mac.tar.gz"),
            "sha256Url": server.url("/files/SHA256SUMS"),
        },
        { "edition": "dbip-asn-lite", "source": "db-ip-lite", "url": server.url("") },
    ] });
    let (bundle, api, _permit) = suite.other_bundle_with(Settings::default(), &[("geo-ip", configuration)]).await;
    let (success, message) = task_result(&call(&api, "?live=true").await);
    assert!(success, "{message}");
    let published_files = files(&folder(&api));
    for (edition, content) in
        [("isp", database(kind, 2)), ("Mac", mac), ("dbip-asn-lite", database("DBIP-ASN-Lite", 2))]
    {
        assert_eq!(published(&published_files, edition), Some(content), "{edition}: {message}");
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_server_that_sends_a_byte_a_second_leaves_time_for_the_next_editions(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    server.instead("/files/slow.mmdb.gz", [Behaviour::trickled_body(200, Duration::from_secs(1))]);
    server.serve("/files/next.mmdb.gz", gzip(&database("next", 2)));
    let edition = |name: &str| {
        let url = server.url(&format!("/files/{name}.mmdb.gz"));
        json!({ "edition": name, "source": "url", "url": url })
    };
    let configuration = json!({ "editions": [edition("slow"), edition("next")] });
    let (bundle, api, _permit) = suite.other_bundle_with(Settings::default(), &[("geo-ip", configuration)]).await;
    let (_, message) = scheduled(&api).await;
    assert!(
        message.contains("slow: downloading: the download was stopped because the server is too slow"),
        "{message}"
    );
    assert_eq!(published(&files(&folder(&api)), "next"), Some(database("next", 2)), "{message}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn an_edition_has_its_share_of_the_time_of_a_call(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    server.serve(&path("Dripping"), gzip(&database("Dripping", 2)));
    server.serve(&path("Next"), gzip(&database("Next", 2)));
    server.instead(&path("Dripping"), [Behaviour::trickled_body(200, Duration::from_secs(1))]);
    let editions = ["Dripping", "Next"].map(|name| plain(name, &server));
    let configuration = json!({ "editions": editions });
    let (bundle, api, _permit) = suite.other_bundle_with(Settings::default(), &[("geo-ip", configuration)]).await;
    let (success, message) = task_result(&call(&api, "?live=true").await);
    assert!(!success && message.contains("Dripping: the update ran out of time"), "{message}");
    assert_eq!(published(&files(&folder(&api)), "Next"), Some(database("Next", 2)), "{message}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_file_of_another_kind_is_named_with_the_remedy(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n";
    let kinds: [(&str, &[u8], &str); 4] = [
        ("Page", b"<!DOCTYPE html><title>Sign in</title>", "a web page (HTML or XML) instead of a database: open"),
        ("Json", b"{\"message\": \"moved\"}", "JSON instead of a database: use the address of the file"),
        ("Lfs", pointer.as_bytes(), "a Git LFS pointer instead of a database: use the address of the content"),
        ("Zip", b"PK\x03\x04\x14\0\0\0", "a ZIP archive, which is not supported: use the address of"),
    ];
    let names = kinds.map(|(name, ..)| name);
    for (name, content, _) in kinds {
        server.serve(&path(name), content);
    }
    server.serve(&path("Rebuilt"), gzip(&database("Rebuilt", 2)));
    let editions: Vec<_> = names.iter().chain(&["Rebuilt"]).map(|name| plain(name, &server)).collect();
    let configuration = json!({ "editions": editions });
    let (bundle, api, _permit) = suite.other_bundle_with(Settings::default(), &[("geo-ip", configuration)]).await;
    let (success, message) = task_result(&call(&api, "?live=true").await);
    assert!(!success && message.contains("Rebuilt: published build"), "{message}");
    for (name, _, sentence) in kinds {
        assert!(message.contains(&format!("{name}: the server returned {sentence}")), "{message}");
        assert_eq!(published(&files(&folder(&api)), name), None, "{message}");
    }
    server.serve(&path("Rebuilt"), gzip(&database_of("Rebuilt", 2, 201)));
    let (_, message) = task_result(&call(&api, "?live=true").await);
    assert!(message.contains("Rebuilt: the build time") && message.contains("the content differs"), "{message}");
    assert_eq!(published(&files(&folder(&api)), "Rebuilt"), Some(database("Rebuilt", 2)), "{message}");
    assert!(bundle.stop().await.success());
}
