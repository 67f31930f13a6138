//! docs/cli.md has each command's help, word for word, and options have the same names as in openapi.yaml.

use std::{collections::BTreeSet, fs, process::Command};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
const CONTRACT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.yaml");
const HEADING: &str = "\n## Help of each command\n";
const COMMANDS: [&str; 28] = [
    "login",
    "logout",
    "token",
    "whoami",
    "listen",
    "trigger",
    "publish",
    "webhooks",
    "webhooks show",
    "webhooks create",
    "webhooks change",
    "webhooks remove",
    "webhooks rotate",
    "webhooks pause",
    "webhooks resume",
    "webhooks test",
    "types",
    "types show",
    "verify",
    "deliveries",
    "why",
    "show",
    "resend",
    "cancel",
    "recover",
    "replay",
    "open",
    "completions",
];

/// Options with shorter names than their API members.
const RENAMED: [(&str, &str); 9] = [
    ("disable", "enabled"),
    ("enable", "enabled"),
    ("filter", "eventFilter"),
    ("from", "createdFrom"),
    ("header", "headers"),
    ("idempotency-key", "Idempotency-Key"),
    ("no-headers", "headers"),
    ("timeout", "timeoutSeconds"),
    ("webhook", "webhookIdentifier"),
];
/// Options that concern the program, not the API.
const OWN: [&str; 14] = [
    "address",
    "at-once",
    "client-secret-stdin",
    "follow",
    "forward",
    "help",
    "json",
    "list",
    "print",
    "print-body",
    "profile",
    "secret-file",
    "tolerance",
    "yes",
];

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_waypost")).args(arguments).arg("--help").output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("help is text");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
fn the_page_of_the_command_line_is_current() {
    let general = help(&[]);
    for command in COMMANDS {
        let (general, command) = match command.split_once(' ') {
            Some((group, command)) => (help(&[group]), command),
            None => (general.clone(), command),
        };
        assert!(general.contains(&format!("\n  {command} ")), "{command}: {general}");
    }
    let of_command = |command: &str| help(&command.split(' ').collect::<Vec<_>>());
    let sections = COMMANDS.map(|command| format!("\n### {command}\n\n```text\n{}\n```\n", of_command(command)));
    let reference = format!("\n```text\n{general}\n```\n{}", sections.concat());
    let document = fs::read_to_string(DOCUMENT).expect("docs/cli.md is text");
    let (introduction, written) = document.split_once(HEADING).expect("docs/cli.md has the section");
    if written == reference {
        return;
    }
    let new = concat!(env!("CARGO_TARGET_TMPDIR"), "/cli.md");
    fs::write(new, format!("{introduction}{HEADING}{reference}")).expect("cargo's folder can be written");
    panic!("docs/cli.md is not current: cp {new} docs/cli.md");
}

/// The option that a line of help describes.
fn option_of(line: &str) -> Option<&str> {
    let with_short = || line.strip_prefix("  -")?.split_once(", --").map(|(_, long)| long);
    line.strip_prefix("      --").or_else(with_short)?.split(' ').next()
}

fn camel_case(option: &str) -> String {
    let mut words = option.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1);
        name + &initial.to_uppercase() + rest
    })
}

/// The names of members, parameters and headers. A member's first line is followed by its type or description.
fn names_of(contract: &str) -> BTreeSet<&str> {
    let lines: Vec<_> = contract.lines().map(str::trim).collect();
    let members = lines.windows(2).filter_map(|lines| {
        let begins = ["$ref:", "description:", "type:", "x-untrusted:"].iter().any(|key| lines[1].starts_with(key));
        lines[0].strip_suffix(':').filter(|_| begins)
    });
    let parameters = lines.iter().filter_map(|line| line.trim_start_matches("- ").strip_prefix("name: "));
    members.chain(parameters).collect()
}

#[test]
fn an_option_for_a_member_of_the_api_has_its_name() {
    let contract = fs::read_to_string(CONTRACT).expect("openapi.yaml is text");
    let names = names_of(&contract);
    let document = fs::read_to_string(DOCUMENT).expect("docs/cli.md is text");
    let (_, reference) = document.split_once(HEADING).expect("docs/cli.md has the section");
    let options: BTreeSet<_> = reference.lines().filter_map(option_of).collect();
    for option in &options {
        let renamed = RENAMED.iter().find(|(renamed, _)| renamed == option);
        let name = renamed.map_or_else(|| camel_case(option), |(_, name)| (*name).to_owned());
        assert!(OWN.contains(option) || names.contains(name.as_str()), "--{option}: openapi.yaml has no `{name}`");
    }
    for exception in RENAMED.iter().map(|(option, _)| option).chain(&OWN) {
        assert!(options.contains(exception), "no command has --{exception}");
    }
}
