//! The tools that commands install: each tool and its dependencies have exact versions, with hashes where the package
//! manager checks them.

use std::{collections::HashSet, fs, path::Path, process::Command};

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The non-empty lines, each joined with its continuation lines.
fn requirements(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    lines.replace("\\\n", " ").lines().map(str::to_lowercase).filter(|line| !line.is_empty()).collect()
}

#[test]
fn each_python_package_is_pinned_by_version_and_hash() {
    for list in ["tests", "deploy", "audit", "receivers"] {
        let locked = requirements(&read(&format!("requirements/{list}.txt")));
        for package in &locked {
            assert!(package.contains("==") && package.contains("--hash=sha256:"), "requirements/{list}.txt: {package}");
        }
        let pins: HashSet<_> = locked.iter().filter_map(|package| package.split_whitespace().next()).collect();
        let wanted = requirements(&read(&format!("requirements/{list}.in")));
        assert!(!wanted.is_empty());
        // The lock file lists packages without extras.
        let without_extras = |tool: &String| match (tool.split_once('['), tool.split_once(']')) {
            (Some((name, _)), Some((_, version))) => format!("{name}{version}"),
            _ => tool.clone(),
        };
        for tool in wanted.iter().map(without_extras) {
            assert!(pins.contains(&*tool), "requirements/{list}.txt does not pin {tool}: run `make pin`");
        }
    }
}

/// The Makefile refuses before doing anything, so the test builds nothing.
#[test]
fn a_right_to_publish_is_given_by_yes_alone() {
    let made = |word: &str| {
        let mut make = Command::new("make");
        make.args(["--dry-run", "application", "NAME=a", "ENTITY=b", &format!("MAY_PUBLISH={word}")]);
        make.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).output().expect("make is installed")
    };
    for (word, publishes) in [("yes", true), ("no", false), ("", false)] {
        let said = String::from_utf8_lossy(&made(word).stdout).into_owned();
        assert!(said.contains("application create") && said.contains("--may-publish") == publishes, "{word}: {said}");
    }
    let refused = made("Yes");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("MAY_PUBLISH is `Yes`"), "{said}");
}

#[test]
fn commands_install_exact_versions_and_check_what_they_get() {
    let makefile = read("Makefile");
    let fetching = |tool: &str| makefile.lines().filter(|line| line.contains(tool)).collect::<Vec<_>>();
    let crates = fetching("cargo install");
    let packages = fetching("/pip install");
    assert!(!crates.is_empty() && !packages.is_empty(), "the Makefile installs in another way: have this test read it");
    for line in crates {
        assert!(line.contains(" --locked ") && line.contains("_VERSION)"), "{line}");
    }
    for line in packages {
        assert!(line.contains(" --require-hashes ") && line.contains(" --no-deps "), "{line}");
    }
    let node: serde_json::Value = serde_json::from_str(&read("tests/node/package-lock.json")).expect("JSON");
    let modules = node["packages"].as_object().expect("packages").iter().filter(|(name, _)| !name.is_empty());
    for (name, module) in modules {
        assert!(module["integrity"].is_string(), "tests/node/package-lock.json: {name}");
    }
}
