//! docs/threats.md names a test for each attack, and all these tests exist.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use crate::harness::{Suite, project};
use contract_test::contract_test;

/// The names of all functions in a folder's Rust files.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the project").flatten() {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a file of the project");
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[contract_test]
async fn every_test_that_the_security_page_names_exists(_: Arc<Suite>) {
    let mut existing = BTreeSet::new();
    for folder in ["shared", "operator/src", "local", "tests/contract", "tests/simulation/src"] {
        functions(&project().join(folder), &mut existing);
    }
    let page = fs::read_to_string(project().join("docs/threats.md")).expect("the page is text");
    let named: Vec<&str> =
        page.split('`').skip(1).step_by(2).filter_map(|code| Some(code.rsplit_once("::")?.1)).collect();
    assert!(named.len() > 50, "only {} tests are named", named.len());
    let missing: Vec<&str> = named.into_iter().filter(|name| !existing.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/threats.md names tests that do not exist: {missing:?}");
}
