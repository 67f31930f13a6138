//! The panel's files agree with the service.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use issuer::panel::views::VIEWS;

fn panel() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../panel")
}

fn file(path: &str) -> String {
    fs::read_to_string(panel().join(path)).unwrap_or_else(|error| panic!("panel/{path}: {error}"))
}

#[test]
fn scopes_are_explained_as_the_contract_explains_them() {
    let contract = fs::read_to_string(panel().join("../openapi.yaml")).expect("a file of the project");
    let words = file("words/scopes.js");
    let (_, scopes) = contract.split_once("          scopes:\n").expect("the contract lists the scopes");
    let scopes: Vec<_> = scopes.lines().map_while(|line| line.strip_prefix("            ")?.split_once(": ")).collect();
    assert_eq!(scopes.len(), 30, "{scopes:?}");
    let text_of = |block: &str, name: &str| {
        let text = block.split(&format!("{name}: \"")).nth(1).and_then(|rest| rest.split('"').next());
        text.unwrap_or_else(|| panic!("panel/words/scopes.js lacks {name}")).to_owned()
    };
    let (_, actions) = words.split_once("ACTION_MEANINGS = {").expect("the file explains the actions");
    for (scope, meaning) in scopes {
        let (section, action) = scope.split_once('.').expect("a scope has two parts");
        let block = words.split(&format!("  {section}: {{")).nth(1).expect("the file has every section");
        let [unlocks, risk, action] = [text_of(block, "unlocks"), text_of(block, "risk"), text_of(actions, action)];
        assert_eq!(meaning, format!("'{action} of {section}: {unlocks}. Risk: {risk}.'"), "{scope}");
    }
}

#[test]
fn the_views_that_a_link_may_open_are_those_that_the_page_knows() {
    let main = file("main.js");
    let (_, pages) = main.split_once("const PAGES = {\n").expect("the page lists its views");
    let (pages, _) = pages.split_once("\n};").expect("the list ends");
    let named = pages.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name.trim().trim_matches('"'));
    assert_eq!(named.collect::<BTreeSet<_>>(), BTreeSet::from(VIEWS));
}
