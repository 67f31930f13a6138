//! The bugs planted to test the simulation: a patch that no longer applies tests nothing.

use std::{fs, path::Path, process::Command};

#[test]
fn every_planted_bug_applies_to_the_code() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = project.join("tests/simulation/planted");
    let files = fs::read_dir(folder).expect("the folder is read").map(|entry| entry.expect("an entry").path());
    let patches: Vec<_> = files.filter(|file| file.extension().is_some_and(|ending| ending == "patch")).collect();
    assert!(!patches.is_empty());
    let refused = patches.iter().filter_map(|patch| {
        let check = Command::new("git").current_dir(&project).args(["apply", "--check"]).arg(patch).output();
        let check = check.expect("git is installed");
        (!check.status.success()).then(|| String::from_utf8_lossy(&check.stderr).into_owned())
    });
    assert_eq!(refused.collect::<Vec<_>>(), Vec::<String>::new());
}
