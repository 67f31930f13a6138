//! docs/cli.md has the help of each command, word for word.

use std::{fs, process::Command};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
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
