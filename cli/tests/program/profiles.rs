//! Profiles: which login a command uses, and where it is stored.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use crate::{Ended, Person, fake::Fake, mode};

/// Stores a login for the application with this name.
async fn log_in(person: &Person, fake: &Fake, client: &str, profile: &[&str]) {
    let said = answered(login(person, fake, client, profile), &format!("{client}-s3cret\n")).await.done();
    assert!(!said.contains("s3cret"), "{said}");
}

/// The command that stores this login, with the secret from standard input.
fn login(person: &Person, fake: &Fake, client: &str, profile: &[&str]) -> Command {
    let options = ["login", "--address", &fake.address, "--entity", "hotel", "--client-id", client];
    person.command(&[&options[..], &["--client-secret-stdin"], profile].concat())
}

/// Runs a command with this text on standard input.
async fn answered(mut command: Command, text: &str) -> Ended {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it is built");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    Person::ended(child).await
}

async fn ended(mut command: Command) -> Ended {
    Person::ended(command.spawn().expect("it is built")).await
}

/// The application in the last token request.
fn last_client(fake: &Fake) -> String {
    let body = fake.received("/issuer/oauth2/token").last().expect("a request").body.clone();
    body.split("client_id=").nth(1).and_then(|rest| rest.split('&').next()).expect("a client").to_owned()
}

#[tokio::test]
async fn each_profile_has_its_own_login_for_this_user_alone() {
    let fake = Fake::start().await;
    let person = Person::new();
    log_in(&person, &fake, "first", &[]).await;
    log_in(&person, &fake, "second", &["--profile", "staging"]).await;
    let path = person.file().with_file_name("profiles").join("staging.json");
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    for (arguments, variable, client) in [
        (&["token"][..], None, "first"),
        (&["token", "--profile", "staging"], None, "second"),
        (&["token"], Some("staging"), "second"),
        (&["token", "--profile", "default"], Some("staging"), "first"),
    ] {
        let mut command = person.command(arguments);
        command.envs(variable.map(|name| ("WAYPOST_PROFILE", name)));
        ended(command).await.done();
        assert_eq!(last_client(&fake), client, "{arguments:?} {variable:?}");
    }
    person.run(&["logout", "--profile", "staging"]).await.done();
    let said = person.run(&["token", "--profile", "staging"]).await.failed(4);
    assert!(
        said.contains("no profile `staging`; stored: default") && said.contains("waypost login --profile"),
        "{said}"
    );
    person.run(&["token"]).await.done();
}

#[tokio::test]
async fn the_environment_overrides_a_profile_unless_the_option_names_it() {
    let fake = Fake::start().await;
    let person = Person::new();
    log_in(&person, &fake, "second", &["--profile", "staging"]).await;
    let whoami = async |arguments: &[&str], variable: Option<&str>| {
        let mut command = person.command(arguments);
        command.env("WAYPOST_ENTITY", "other").envs(variable.map(|name| ("WAYPOST_PROFILE", name)));
        ended(command).await.done()
    };
    let said = whoami(&["whoami"], Some("staging")).await;
    for line in ["profile           staging", "overridden by     WAYPOST_ENTITY", "entity            other"] {
        assert!(said.lines().any(|shown| shown == line), "{line:?} in {said}");
    }
    let exact = whoami(&["whoami", "--profile", "staging"], None).await;
    assert!(exact.contains("entity            hotel") && !exact.contains("overridden"), "{exact}");
}

#[tokio::test]
async fn variables_of_another_client_do_not_reach_a_named_profile() {
    let fake = Fake::start().await;
    let person = Person::new();
    let beside_another_client = |mut command: Command| {
        command.env("WAYPOST_ADDRESS", &fake.address).env("WAYPOST_ISSUER", "http://127.0.0.1:9");
        command.env("WAYPOST_ENTITY", "other").env("WAYPOST_CLIENT_ID", "other");
        command.env("WAYPOST_CLIENT_SECRET", "other-s3cret");
        command
    };
    let staging = ["--profile", "staging"];
    let empty = person.command(&[&["login"][..], &staging].concat());
    let said = ended(beside_another_client(empty)).await.failed(2);
    assert!(said.contains("--address is missing") && said.contains("variables are ignored"), "{said}");
    let options = ["login", "--address", &fake.address, "--entity", "hotel", "--client-id", "second"];
    let without_secret = person.command(&[&options[..], &staging].concat());
    let said = ended(beside_another_client(without_secret)).await.failed(2);
    assert!(said.contains("--client-secret-stdin") && !said.contains("WAYPOST_CLIENT_SECRET"), "{said}");
    assert!(fake.everything().is_empty(), "{:?}", fake.everything());
    answered(beside_another_client(login(&person, &fake, "second", &staging)), "s3cret\n").await.done();
    ended(person.command(&["token", "--profile", "staging"])).await.done();
    let sent = fake.received("/issuer/oauth2/token").last().expect("a request").body.clone();
    assert!(sent.contains("client_id=second") && sent.ends_with("client_secret=s3cret"), "{sent}");
}

#[tokio::test]
async fn login_without_the_option_takes_missing_values_from_the_environment() {
    let fake = Fake::start().await;
    let person = Person::new();
    let mut command = person.command(&["login", "--client-id", "given"]);
    command.env("WAYPOST_ADDRESS", &fake.address).env("WAYPOST_ENTITY", "hotel");
    command.env("WAYPOST_CLIENT_ID", "other").env("WAYPOST_CLIENT_SECRET", "s3cret");
    command.env("WAYPOST_PROFILE", "staging");
    ended(command).await.done();
    ended(person.command(&["token", "--profile", "staging"])).await.done();
    assert_eq!(last_client(&fake), "given");
}
