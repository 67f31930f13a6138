//! The documents name files that exist.

use std::{fs, path::Path};

#[test]
fn every_path_that_a_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).expect("a folder of the project").flatten().map(|entry| entry.path());
    let (mut named, mut missing) = (0, Vec::new());
    for document in docs.chain([root.join("README.md"), root.join("SECURITY.md")]) {
        let text = fs::read_to_string(&document).expect("a document is text");
        for code in text.split('`').skip(1).step_by(2) {
            let ours =
                ["shared/", "functions/", "operator/", "local/", "tests/"].iter().any(|top| code.starts_with(top));
            let plain = code.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
            if ours && plain {
                named += 1;
                if !root.join(code).exists() {
                    missing.push(format!("{}: {code}", document.display()));
                }
            }
        }
    }
    assert!(named > 20, "only {named} paths are named");
    assert!(missing.is_empty(), "documents name files that do not exist: {missing:#?}");
}
