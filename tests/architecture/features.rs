//! `make test` reuses the crates that `make run` compiled: cargo compiles a crate once per set of features.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

/// Each crate's features, by name and version; a crate that build scripts also use may have two sets.
type Features = BTreeMap<String, BTreeSet<String>>;

/// The third-party crates that `cargo build` compiles with these arguments, and their features.
fn third_party(selection: &[&str]) -> Features {
    let output = Command::new(env!("CARGO"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}\t{f}"])
        .args(selection)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut features = Features::new();
    for line in String::from_utf8(output.stdout).expect("names are UTF-8").lines() {
        let (package, chosen) = line.split_once('\t').unwrap_or((line, ""));
        // Only our own crates are listed with their folders.
        if !package.is_empty() && !package.contains('/') {
            features.entry(package.replace(" (proc-macro)", "")).or_default().insert(chosen.replace(" (*)", ""));
        }
    }
    features
}

#[test]
fn the_tests_compile_no_crate_of_the_service_again() {
    let service = third_party(&["--edges", "normal,build", "--package", "local-functions", "--package", "local"]);
    let tests = third_party(&["--edges", "normal,build,dev", "--workspace"]);
    assert!(service.len() > 200, "cargo tree shows only {service:?}");
    let again: Vec<_> = service
        .iter()
        .filter(|(package, chosen)| !chosen.is_subset(&tests[*package]))
        .map(|(package, chosen)| format!("{package}: {chosen:?}, with the tests {:?}", tests[package]))
        .collect();
    assert!(
        again.is_empty(),
        "Cargo.toml says below \"What only the tests' dependencies choose\" how these agree:\n{}",
        again.join("\n")
    );
}
