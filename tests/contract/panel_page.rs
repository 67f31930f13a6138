//! The panel's page and files, as browsers receive them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    path::Path,
    sync::Arc,
};

use contract_test::contract_test;
use flate2::read::GzDecoder;

use crate::harness::{ApiResponse, Settings, Suite, project};

/// The script with all modules, which the build creates.
const SCRIPT: &str = "main.js";

/// A style sheet as the build shortens it: without indentation, empty lines and comments.
fn shortened(style: &str) -> String {
    let is_shown = |line: &&str| !(line.is_empty() || line.starts_with("/*") && line.ends_with("*/"));
    style.lines().map(str::trim).filter(is_shown).collect::<Vec<_>>().join("\n")
}

/// The files that browsers load, keyed by path. Only the style sheets are changed.
fn files() -> BTreeMap<String, Vec<u8>> {
    fn read(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).expect("the project has a panel").flatten() {
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                read(&entry.path(), &format!("{path}/"), found);
            } else if ["css", "svg", "png"].iter().any(|kind| path.ends_with(&format!(".{kind}"))) {
                let content = fs::read(entry.path()).expect("a file of the project");
                let content = if path.ends_with(".css") {
                    shortened(std::str::from_utf8(&content).expect("a style sheet is text")).into_bytes()
                } else {
                    content
                };
                found.insert(path, content);
            }
        }
    }
    let mut found = BTreeMap::new();
    read(&project().join("panel"), "", &mut found);
    assert!(!found.is_empty(), "the panel has files");
    found
}

/// The folder that contains the files, as the page names it.
async fn folder(suite: &Suite) -> String {
    let page = suite.api.get("/panel").expect(200).await.text();
    let (_, rest) = page.split_once("\"/panel/assets/").expect("the page names its files");
    format!("/panel/assets/{}", &rest[..16])
}

fn unpacked(answer: &ApiResponse) -> Vec<u8> {
    assert_eq!(answer.header("content-encoding"), "gzip", "{}", answer.exchange);
    let mut plain = Vec::new();
    GzDecoder::new(answer.body.as_slice()).read_to_end(&mut plain).expect("it is packed");
    plain
}

#[contract_test]
async fn the_page_is_the_same_at_every_address_and_asked_for_each_time(suite: Arc<Suite>) {
    let api = &suite.api;
    let first = api.get("/panel").expect(200).await;
    let tag = first.header("etag").to_owned();
    assert!(first.header("content-type").starts_with("text/html"));
    assert_eq!((first.header("cache-control"), first.header("vary")), ("no-cache", "Accept-Encoding"));
    for path in ["/panel/deliveries", "/panel/deliveries/dlv_1?status=failed", "/panel/a/b/c/d", "/panel/assets"] {
        let answer = api.get(path).expect(200).await;
        assert_eq!((answer.text(), answer.header("etag")), (first.text(), tag.as_str()), "{path}");
    }
    let unchanged = api.get("/panel/webhooks").header("if-none-match", &tag).expect(304).await;
    assert!(unchanged.body.is_empty() && unchanged.header("etag") == tag, "{}", unchanged.exchange);
    api.get("/panel").header("if-none-match", "\"other\"").expect(200).await;
    let packed = api.get("/panel").header("accept-encoding", "gzip, br").expect(200).await;
    assert_eq!(unpacked(&packed), first.body);
    assert_ne!(packed.header("etag"), tag, "another encoding has another tag");
    let head = api.call("HEAD", "/panel/deliveries").expect(200).await;
    assert!(head.body.is_empty() && head.header("etag") == tag, "{}", head.exchange);
    for none in ["/panel/", "/panel//deliveries", "/panel/deliveries/", "/panel/session/", "/Panel"] {
        api.get(none).refused(404, "not-found").await;
    }
    api.post("/panel/deliveries").refused(405, "method-not-allowed").await;
    api.get("/panel/session").refused(405, "method-not-allowed").await;
}

#[contract_test]
async fn nothing_foreign_is_loaded_sent_to_or_framed_by_the_page(suite: Arc<Suite>) {
    let page = suite.api.get("/panel/deliveries").header("accept", "text/html").expect(200).await;
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                  trusted-types 'none'";
    assert_eq!(page.header("content-security-policy"), policy);
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("set-cookie", ""),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    let text = page.text();
    for inline in [" style=", "<style", " onclick=", " onload=", "javascript:", "http://", "https://"] {
        assert!(!text.contains(inline), "the page has {inline}, which its policy forbids");
    }
    for script in text.split("<script").skip(1) {
        let (head, content) = script.split_once('>').expect("a tag ends");
        assert!(head.contains("src=") && content.starts_with("</script>"), "the page has an inline script");
    }
}

#[contract_test]
async fn every_file_is_served_as_it_is_for_ever(suite: Arc<Suite>) {
    let api = &suite.api;
    let folder = folder(&suite).await;
    for (path, content) in files() {
        let address = format!("{folder}/{path}");
        let answer = api.get(&address).expect(200).await;
        assert!(answer.body == content, "{path} is not the file of the project");
        let media_type = match path.rsplit('.').next().unwrap_or_default() {
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => "image/png",
        };
        assert_eq!(answer.header("content-type"), media_type, "{path}");
        assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable", "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
        let packed = api.get(&address).header("accept-encoding", "gzip").expect(200).await;
        assert_eq!(unpacked(&packed), content, "{path}");
        let tag = packed.header("etag");
        let known = api.get(&address).header("accept-encoding", "gzip").header("if-none-match", tag);
        assert!(known.expect(304).await.body.is_empty(), "{path}");
    }
}

#[contract_test]
async fn a_file_of_another_release_is_not_found(suite: Arc<Suite>) {
    let api = &suite.api;
    let folder = folder(&suite).await;
    let (path, _) = files().pop_first().expect("there is one");
    for address in [
        format!("/panel/assets/0123456789abcdef/{path}"),
        format!("/panel/assets/{path}"),
        format!("{folder}/nothing.js"),
        format!("{folder}/index.html"),
        format!("{folder}/../{path}"),
        format!("{folder}/%2e%2e/Cargo.toml"),
        folder.clone() + "/",
    ] {
        // The client normalizes some of these paths to the page, or to another missing path.
        let answer = api.get(&address).answered().await;
        let is_page = answer.header("content-type").starts_with("text/html");
        assert!(answer.status == 404 || is_page, "{address}: {}", answer.exchange);
    }
    let gone = api.get(format!("/panel/assets/0123456789abcdef/{path}"));
    gone.refused(404, "not-found").await;
}

#[contract_test]
async fn the_page_loads_one_script_of_all_modules(suite: Arc<Suite>) {
    let api = &suite.api;
    let page = api.get("/panel").expect(200).await.text();
    let folder = folder(&suite).await;
    let files = files();
    let named = named(&page, &folder);
    for name in named.iter().filter(|name| *name != SCRIPT) {
        assert!(files.contains_key(name), "the page names {name}");
    }
    assert_eq!(
        page.matches("/panel/assets/").count(),
        page.matches(&folder).count(),
        "a file's address lacks the release"
    );
    let scripts: Vec<_> = named.iter().filter(|name| name.ends_with(".js")).collect();
    assert_eq!(scripts, [SCRIPT], "each further script would be another round trip");
    let script = api.get(format!("{folder}/{SCRIPT}")).expect(200).await;
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    let script = script.text();
    for form in ["import(", "import.meta", "from \"", "\nimport ", "\nexport "] {
        assert!(!script.contains(form), "the script loads a further file: {form}");
    }
    api.get(format!("{folder}/pages/deliveries.js")).refused(404, "not-found").await;
}

/// The files that the page refers to in any tag.
fn named(page: &str, folder: &str) -> BTreeSet<String> {
    let begin = format!("\"{folder}/");
    page.split(&begin).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

#[contract_test]
async fn the_whole_panel_is_small(suite: Arc<Suite>) {
    let api = &suite.api;
    let folder = folder(&suite).await;
    let page = api.get("/panel").expect(200).await.text();
    let first = named(&page, &folder);
    let size = async |path: String| api.get(path).header("accept-encoding", "gzip").expect(200).await.body.len();
    let mut all = size("/panel".to_owned()).await;
    for path in &first {
        all += size(format!("{folder}/{path}")).await;
    }
    assert!(all < 90 * 1024, "{all} bytes over the wire: {first:?}");
}

#[contract_test]
async fn people_type_a_secret_into_the_page_only_where_the_deployment_says_so(suite: Arc<Suite>) {
    let ways_in = |page: &str| {
        let (_, rest) = page.split_once("<meta name=\"sign-in\" content=\"").expect("the page says how to sign in");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let here = suite.api.get("/panel").expect(200).await.text();
    let (_bundle, api, _permit) = suite.other_bundle(Settings::default().with("PANEL_CREDENTIALS", "false")).await;
    let elsewhere = api.get("/panel").expect(200).await.text();
    assert_eq!((ways_in(&here), ways_in(&elsewhere)), ("link credentials".to_owned(), "link".to_owned()));
}
