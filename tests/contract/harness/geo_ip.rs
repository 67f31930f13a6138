//! A bundle that updates geo-IP databases, its provider, and the published databases.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use fakes::{
    UpdateServer,
    update_server::{ACCOUNT, LICENCE_KEY, sha256},
};
use geo_ip::testing::DatabaseBuilder;
use serde_json::{Value, json};

use super::{Admin, Api, ApiResponse, Application, aws_variables, now};

/// The files in a store, by path.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

const DAY: i64 = 24 * 60 * 60;

/// All tests use the same time, so that creating a database twice results in the same file.
fn today() -> i64 {
    static TODAY: OnceLock<i64> = OnceLock::new();
    *TODAY.get_or_init(now)
}

/// A database built this many days ago (or in the future, if negative), with its date in the providers' format.
pub fn database(edition: &str, days_ago: i64) -> Vec<u8> {
    database_of(edition, days_ago, 200)
}

/// A database with this many networks.
pub fn database_of(edition: &str, days_ago: i64, networks: u32) -> Vec<u8> {
    let built = u64::try_from(today() - days_ago * DAY).expect("after 1970");
    let about = json!({ "daysAgo": days_ago });
    DatabaseBuilder::new(edition, built).with_many(networks).with("1.1.1.0/24", about).build()
}

/// The date this many days ago.
pub fn day(days_ago: i64) -> String {
    let time = jiff::Timestamp::from_second(today() - days_ago * DAY).expect("a time of today");
    time.strftime("%Y-%m-%d").to_string()
}

/// One of MaxMind's editions on this server.
pub fn maxmind(edition: &str, server: &UpdateServer) -> Value {
    json!({
        "edition": edition, "source": "maxmind", "url": server.url(""),
        "accountId": ACCOUNT, "licenseKey": LICENCE_KEY,
    })
}

/// Calls the task with the correct key.
pub async fn call(api: &Api, query: &str) -> ApiResponse {
    task(api, query).await.expect("an answer")
}

/// Calls the task on a service that may have ended.
pub async fn task(api: &Api, query: &str) -> Option<ApiResponse> {
    let token = api.token(Application::Demo, "").await;
    let body = json!({ "key": api.env["TASK_KEY"], "environment": api.env["ENVIRONMENT"] });
    let call = api.post(format!("/task/geo-ip-update{query}")).bearer(&token).json(&body);
    call.attempt().await.ok()
}

/// The task's result: whether it succeeded, and a line about each edition.
pub fn task_result(answer: &ApiResponse) -> (bool, String) {
    assert_eq!(answer.status, 200, "{}", answer.exchange);
    let answer = answer.json();
    (answer["success"] == true, answer["message"].as_str().expect("openapi.yaml says so").to_owned())
}

/// The folder with a bundle's published databases.
pub fn folder(api: &Api) -> PathBuf {
    api.env["GEO_IP_STORE"].strip_prefix("file://").expect("it publishes in a folder").into()
}

/// The files in a store, except locks.
pub fn files(store: &Path) -> Files {
    fn collect(store: &Path, folder: &Path, files: &mut Files) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(store, &path, files);
            } else if path.extension().is_none_or(|extension| extension != "lock") {
                let name = path.strip_prefix(store).expect("it lies in the store").to_owned();
                files.insert(name, fs::read(&path).expect("no test removes it meanwhile"));
            }
        }
    }
    let mut found = Files::new();
    collect(store, store, &mut found);
    found
}

/// The current database according to an edition's pointer. Asserts that the current and previous databases exist, with
/// the checksums in the pointer.
pub fn published(files: &Files, edition: &str) -> Option<Vec<u8>> {
    let folder = Path::new("local").join(edition);
    let pointer: Value = serde_json::from_slice(files.get(&folder.join("current.json"))?).expect("a pointer is JSON");
    let database = |release: &Value| {
        let name = release["name"].as_str()?;
        let file = files.get(&folder.join(format!("{name}.mmdb")));
        let file =
            file.unwrap_or_else(|| panic!("the database that the pointer of {edition} names is missing: {pointer:#}"));
        assert_eq!(
            release["sha256"],
            sha256(file),
            "the database that the pointer of {edition} names has another checksum"
        );
        Some(file.clone())
    };
    database(&pointer["previous"]);
    Some(database(&pointer["current"]).expect("a pointer has a current release"))
}

/// Runs the operator's program; returns whether it succeeded, and its output.
pub async fn operator(api: &Api, arguments: &[&str]) -> (bool, String) {
    let s3 = ("AWS_ENDPOINT_URL_S3", api.env["S3_ENDPOINT"].clone());
    let env: Vec<_> = aws_variables(&api.env).into_iter().chain([s3]).collect();
    let run = Admin::run(["geo-ip", "--store", &api.env["GEO_IP_STORE"]].iter().chain(arguments), &env).await;
    (run.code == Some(0), run.out + &run.err)
}
