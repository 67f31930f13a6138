//! Profiles: which login a command uses, and where it is stored.

use std::process::Command;

use crate::{Ended, Person, fake::Fake, mode};

/// Stores a login for the application of this name.
async fn log_in(person: &Person, fake: &Fake, client: &str, profile: &[&str]) {
    let mut command = person.command(&[&["login"], profile].concat());
    command.env("WAYPOST_ADDRESS", &fake.address).env("WAYPOST_ENTITY", "hotel");
    command.env("WAYPOST_CLIENT_ID", client).env("WAYPOST_CLIENT_SECRET", format!("{client}-s3cret"));
    let said = ended(command).await.done();
    assert!(!said.contains("s3cret"), "{said}");
}

async fn ended(mut command: Command) -> Ended {
    Person::ended(command.spawn().expect("it is built")).await
}

/// The application of the last request for a token.
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
