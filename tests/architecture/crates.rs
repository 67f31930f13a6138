//! The permitted dependencies between our crates, whose layers docs/architecture.md shows.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const DOMAINS: [&str; 4] = ["geo-ip", "issuer", "payments", "webhooks"];

/// Our crates that a crate may use outside its tests.
fn allowed(name: &str) -> Vec<&'static str> {
    match name {
        "base" | "event-catalogue" | "template" | "reference" | "sandbox" => vec![],
        // The CLI is a public API client like any other; it forwards events with the same exchange code as the service.
        "waypost" => vec!["outbound"],
        "queue" | "secret-store" => vec!["base"],
        "problem" => vec!["base"],
        "storage" | "outbound" => vec!["base", "problem"],
        "auth" => vec!["base", "problem", "storage"],
        "webhooks" | "issuer" | "geo-ip" => vec!["base", "problem", "storage", "outbound", "auth"],
        // The crate publishes its events through the outbox of `webhooks`.
        "payments" => vec!["base", "problem", "storage", "outbound", "auth", "webhooks"],
        "gate" => vec!["base", "problem", "auth"],
        "function" => vec!["base", "problem", "storage", "auth", "gate"],
        "operator" => {
            vec!["base", "problem", "storage", "auth", "geo-ip", "issuer", "payments", "webhooks"]
        }
        "waypost-admin" => vec!["base", "storage", "auth", "geo-ip", "issuer", "operator"],
        "local" => vec![
            "base",
            "problem",
            "storage",
            "outbound",
            "auth",
            "geo-ip",
            "issuer",
            "payments",
            "webhooks",
            "gate",
            "template",
            "operator",
            "queue",
            "secret-store",
        ],
        // The crate includes the source files of all functions.
        "local-functions" => vec![
            "auth",
            "base",
            "function",
            "functions-agents",
            "functions-applications",
            "functions-public",
            "functions-panel",
            "functions-payments",
            "functions-tokens",
            "functions-webhooks",
            "gate",
            "geo-ip",
            "issuer",
            "outbound",
            "payments",
            "problem",
            "storage",
            "webhooks",
        ],
        family if family.starts_with("functions-") => {
            let shared = ["base", "problem", "storage", "outbound", "auth", "gate", "function"];
            let own: &[_] = match family {
                "functions-tokens" | "functions-applications" | "functions-panel" => &["issuer"],
                "functions-webhooks" => &["webhooks"],
                "functions-payments" => &["payments"],
                "functions-geo-ip" => &["geo-ip"],
                // Agents' tools need use cases from several domains, and the scopes of the caller's application.
                "functions-agents" => &["webhooks", "payments", "issuer"],
                _ => &[],
            };
            shared.into_iter().chain(own.iter().copied()).collect()
        }
        other => panic!("add the permitted dependencies of the new crate `{other}` to tests/architecture/crates.rs"),
    }
}

/// Whether a crate is for tests, fakes or measurements; such crates may use everything.
fn is_for_tests(name: &str) -> bool {
    [
        "contract-tests",
        "contract-test",
        "fakes",
        "bench",
        "hello",
        "documented-receiver",
        "mcp-fixtures",
        "rights",
        "simulation",
    ]
    .contains(&name)
}

/// The packages, ours and third-party, that each of our packages depends on outside its tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--manifest-path"])
        .arg(manifest)
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&metadata.stdout).expect("cargo metadata answers with JSON");
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .map(|package| {
            let name = package["name"].as_str().expect("a name").to_owned();
            let all = package["dependencies"].as_array().expect("dependencies").iter();
            let production = all.filter(|dependency| dependency["kind"].is_null());
            (name, production.map(|dependency| dependency["name"].as_str().expect("a name").to_owned()).collect())
        })
        .collect()
}

#[test]
fn a_crate_uses_only_lower_layers() {
    let dependencies = dependencies();
    for (name, used) in dependencies.iter().filter(|(name, _)| !is_for_tests(name)) {
        let allowed = allowed(name);
        let new = used.iter().find(|used| dependencies.contains_key(*used) && !allowed.contains(&used.as_str()));
        assert!(
            new.is_none(),
            "`{name}` uses `{}`, which is no lower layer; it may use {allowed:?} (tests/architecture/crates.rs)",
            new.map(String::as_str).unwrap_or_default()
        );
    }
}

#[test]
fn the_domains_know_no_http_server_and_no_lambda() {
    let dependencies = dependencies();
    for domain in DOMAINS {
        for foreign in ["gate", "function", "lambda_http", "lambda_runtime", "aws_lambda_events", "axum"] {
            assert!(!dependencies[domain].contains(foreign), "the domain `{domain}` depends on `{foreign}`");
        }
    }
}

#[test]
fn only_storage_speaks_to_dynamodb() {
    for (name, used) in dependencies().iter().filter(|(name, _)| !is_for_tests(name)) {
        let allowed = ["storage", "local"].contains(&name.as_str());
        assert!(allowed || !used.contains("aws-sdk-dynamodb"), "`{name}` depends on aws-sdk-dynamodb");
    }
}

/// The dependency tree of a package.
fn tree(package: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", package, "--edges", "normal", "--offline", "--prefix", "none"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .output()
        .expect("cargo runs");
    let tree = String::from_utf8(tree.stdout).expect("text");
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_operators_program_needs_neither_a_database_nor_a_server() {
    let tree = tree("waypost-admin");
    assert!(tree.contains("aws-sdk-cloudformation"), "{tree:?}");
    let of_local = self::tree("local");
    for heavy in ["dynoxide-rs", "axum", "rusqlite"] {
        assert!(of_local.contains(heavy), "`local` no longer uses {heavy}: name what replaces it here");
        assert!(!tree.contains(heavy), "the operator's program is built with {heavy}");
    }
}

/// AWS profiles that use IAM Identity Center need these crates.
#[test]
fn operators_may_sign_in_by_sso() {
    let tree = tree("waypost-admin");
    for part in ["aws-sdk-sso", "aws-sdk-ssooidc"] {
        assert!(tree.contains(part), "aws-config refuses profiles of SSO without {part}: its feature `sso` is off");
    }
}

/// The Rust files in a folder and its subfolders.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the project").flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

#[test]
fn no_function_acts_as_the_operator() {
    let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions"));
    assert!(files.len() > 40, "only {} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).expect("a source is text");
        assert!(!text.contains("of_operator"), "{}: only `operator` calls without a token", file.display());
    }
}

#[test]
fn make_run_does_not_compile_cloudformation() {
    let tree = tree("local");
    assert!(tree.contains("aws-sdk-secretsmanager"), "{tree:?}");
    assert!(!tree.contains("aws-sdk-cloudformation"), "`local` is built with it");
}

#[test]
fn the_level_of_the_log_reaches_every_library_of_ours() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folders = fs::read_dir(shared).expect("a folder of the project").flatten();
    let libraries = folders.map(|folder| folder.file_name().to_string_lossy().replace('-', "_"));
    assert_eq!(libraries.collect::<BTreeSet<_>>(), base::logging::OWN_CRATES.map(str::to_owned).into());
}
