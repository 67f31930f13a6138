//! The documents: the files and links that they name exist, each crate's README names the crate's modules, and lines of
//! prose are short.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The maximum length of a line of prose.
const COLUMNS: usize = 100;
/// The maximum number of words in all documents except the changelog, so that new text replaces old text.
const WORDS: usize = 66_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The folders of all crates that are deployed or run alongside the service.
fn crates() -> Vec<PathBuf> {
    let families = ["shared", "functions"].into_iter().flat_map(|folder| entries(&root().join(folder)));
    families
        .chain(
            ["cli", "operator", "operator/waypost-admin", "local", "local/sandbox", "tests/rights"]
                .map(|name| root().join(name)),
        )
        .collect()
}

fn documents() -> Vec<(PathBuf, String)> {
    let readmes = crates().into_iter().chain([root(), root().join("tests")]).map(|folder| folder.join("README.md"));
    let documents = entries(&root().join("docs"))
        .into_iter()
        .filter(|path| path.is_file())
        .chain(readmes)
        .chain(["SECURITY.md", "CHANGELOG.md"].map(|name| root().join(name)));
    documents
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path, text)
        })
        .collect()
}

#[test]
fn every_path_that_a_document_names_exists() {
    let mut named = 0;
    let mut missing = Vec::new();
    for (document, text) in documents() {
        for code in text.split('`').skip(1).step_by(2) {
            let ours = ["cli/", "shared/", "functions/", "operator/", "local/", "tests/"]
                .iter()
                .any(|top| code.starts_with(top));
            let plain = code.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
            if ours && plain {
                named += 1;
                if !root().join(code).exists() {
                    missing.push(format!("{}: {code}", document.display()));
                }
            }
        }
    }
    assert!(named > 10, "only {named} paths are named");
    assert!(missing.is_empty(), "documents name files that do not exist: {missing:#?}");
}

/// Each section lists its modules in a line such as "Tests: `publishing`."
#[test]
fn the_page_of_crashes_names_every_module_of_crash_points() {
    let page = fs::read_to_string(root().join("docs/crashes.md")).expect("the page is text");
    let lines = page.lines().filter(|line| line.starts_with("Tests: "));
    let named: BTreeSet<&str> = lines.flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
    let modules = entries(&root().join("tests/contract/crash_points"));
    let modules: BTreeSet<&str> = modules.iter().filter_map(|path| path.file_stem()?.to_str()).collect();
    let helpers = BTreeSet::from(["mod", "stage"]);
    assert_eq!(named, &modules - &helpers, "on the page, and in the folder");
}

/// A document's lines, except those in code blocks.
fn lines_of_prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The anchor that GitHub assigns to a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.to_lowercase().replace(' ', "-");
    heading.chars().filter(|sign| sign.is_alphanumeric() || "-_".contains(*sign)).collect()
}

#[test]
fn every_link_of_a_document_leads_to_a_file_and_a_heading() {
    let mut followed = 0;
    let mut broken = Vec::new();
    for (document, text) in documents() {
        let links =
            lines_of_prose(&text).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split_once(')'));
        for (link, _) in links.filter(|(link, _)| !link.starts_with("http") && !link.contains(' ')) {
            followed += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let folder = document.parent().expect("a document is in a folder");
            let target = if file.is_empty() { document.clone() } else { folder.join(file) };
            let leads = if heading.is_empty() {
                target.exists()
            } else {
                let text = fs::read_to_string(&target).unwrap_or_default();
                let mut headings = lines_of_prose(&text).filter(|line| line.starts_with('#'));
                headings.any(|line| anchor(line.trim_start_matches('#').trim()) == heading)
            };
            if !leads {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(followed > 200, "only {followed} links are followed");
    assert!(broken.is_empty(), "links lead nowhere: {broken:#?}");
}

#[test]
fn the_readme_of_a_crate_names_its_modules_and_binaries() {
    let mut missing = Vec::new();
    for folder in crates() {
        let readme = fs::read_to_string(folder.join("README.md")).expect("each crate has a README");
        for path in entries(&folder.join("src")).into_iter().chain(entries(&folder.join("src/bin"))) {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let tests = ["tests", "testing"].contains(&&*name) || name.ends_with("_tests");
            if !tests && !["lib", "main", "bin"].contains(&&*name) && !readme.contains(&format!("`{name}`")) {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "READMEs do not name {missing:#?}");
}

#[test]
fn the_errors_of_attempts_in_examples_are_texts_of_the_code() {
    let sources = entries(&root().join("shared/outbound/src")).into_iter();
    let code: String = sources.map(|path| fs::read_to_string(path).expect("a source is text")).collect();
    let contract = fs::read_to_string(root().join("openapi.yaml")).expect("the contract is text");
    let errors = contract.lines().filter_map(|line| {
        let (name, value) = line.trim().split_once(": '")?;
        ["error", "lastError"].contains(&name).then_some(value.strip_suffix('\'')?)
    });
    let texts: Vec<_> = errors.map(|error| error.split_once(": ").expect("a kind, and then the text").1).collect();
    assert!(texts.len() > 1, "only {texts:?}");
    for text in texts {
        assert!(code.contains(&format!("\"{text}\"")), "no attempt ends with `{text}`");
    }
}

/// Whether commands contain a comment: a word that begins with `#`, outside quotation marks.
fn has_comment(commands: &str) -> bool {
    let mut quote = None;
    let mut escaped = false;
    let mut before = '\n';
    for letter in commands.chars() {
        if escaped {
            escaped = false;
        } else if letter == '\\' && quote != Some('\'') {
            escaped = true;
        } else if quote == Some(letter) {
            quote = None;
        } else if quote.is_none() && ['"', '\''].contains(&letter) {
            quote = Some(letter);
        } else if quote.is_none() && letter == '#' && (before.is_whitespace() || ";&|(".contains(before)) {
            return true;
        }
        before = letter;
    }
    false
}

/// Pasted into an interactive zsh, a comment becomes part of the command.
#[test]
fn commands_to_be_pasted_have_no_comments() {
    for (commands, expected) in [
        ("make run # until Ctrl-C", true),
        ("# The endpoint:\nmake run", true),
        ("make run \\\n  PORT=9001;# another", true),
        ("printf %s \"${MESSAGE#*\"$TAB\"}\" > event.json", false),
        ("curl \"${BACK%%\\?*}\" -d \"${ASK#*\\?}\" -d 'a # b' -d \"c # d\" address#part", false),
    ] {
        assert_eq!(has_comment(commands), expected, "{commands}");
    }
    let mut pasted = 0;
    let mut commented = Vec::new();
    for (document, text) in documents() {
        let mut commands: Option<(usize, String)> = None;
        for (number, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut commands, fence) {
                (None, Some("sh" | "bash" | "zsh" | "shell" | "console")) => {
                    commands = Some((number + 1, String::new()))
                }
                (Some((_, block)), None) => *block += &format!("{line}\n"),
                (Some((begun, block)), Some(_)) => {
                    pasted += 1;
                    if has_comment(block) {
                        commented.push(format!("{}:{begun}", document.display()));
                    }
                    commands = None;
                }
                (None, _) => {}
            }
        }
    }
    assert!(pasted > 30, "only {pasted} blocks of commands are found");
    assert!(commented.is_empty(), "commands to be pasted contain a comment: {commented:#?}");
}

/// The Markdown files in a folder, except those that tools install or write.
fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    const NOT_OURS: [&str; 5] = ["target", "node_modules", "corpus", "artifacts", "generated"];
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ours = entries(folder).into_iter().filter(|path| !NOT_OURS.contains(&&*name(path)));
    let ours = ours.filter(|path| !name(path).starts_with('.'));
    let found = ours.flat_map(|path| if path.is_dir() { markdown_files(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

/// Counts words as `wc -w` does.
#[test]
fn the_documents_stay_within_their_budget_of_words() {
    let files = markdown_files(&root()).into_iter().filter(|path| !path.ends_with("CHANGELOG.md"));
    let count = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (text.split_whitespace().count(), path)
    };
    let mut counts: Vec<_> = files.map(count).collect();
    assert!(counts.len() > 50, "only {} files are found", counts.len());
    counts.sort_unstable();
    counts.reverse();
    let sum: usize = counts.iter().map(|(words, _)| words).sum();
    assert!(sum <= WORDS, "{sum} words instead of {WORDS}; the longest files: {:#?}", &counts[..5]);
}

/// Tables, code and unbreakable words may exceed the limit.
#[test]
fn prose_has_at_most_100_columns() {
    let mut long = Vec::new();
    for (document, text) in documents() {
        let mut code = false;
        for (number, line) in text.lines().enumerate() {
            code ^= line.trim_start().starts_with("```");
            let prose = !code && !line.starts_with('|') && line.trim().contains(' ');
            if prose && line.chars().count() > COLUMNS {
                long.push(format!("{}:{}", document.display(), number + 1));
            }
        }
    }
    assert!(long.is_empty(), "prose is longer than {COLUMNS} columns: {long:#?}");
}
