//! The operator's program: how it finds a deployment, its output and its exit codes.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    applications::{accepted, text},
    harness::{Admin, Behaviour, Receiver, Settings, Suite, admin, aws_variables},
};

/// CloudFormation's description of a stack with these outputs, or an error.
/// <https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html>
fn described(outputs: &[(&str, &str)]) -> Behaviour {
    let member = |(key, value): &(&str, &str)| {
        format!("<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>")
    };
    let outputs: String = outputs.iter().map(member).collect();
    let body = format!(
        r#"<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks>
        <member><StackName>waypost</StackName><CreationTime>2026-11-20T09:45:00Z</CreationTime>
        <StackStatus>UPDATE_COMPLETE</StackStatus><Outputs>{outputs}</Outputs></member></Stacks></DescribeStacksResult>
        <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></DescribeStacksResponse>"#
    );
    Behaviour::answer(200, &[("content-type", "text/xml")], body)
}

fn error(status: u16, code: &str, message: &str) -> Behaviour {
    let body = format!(
        r#"<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error><Type>Sender</Type>
        <Code>{code}</Code><Message>{message}</Message></Error><RequestId>1</RequestId></ErrorResponse>"#
    );
    Behaviour::answer(status, &[("content-type", "text/xml")], body)
}

/// A simulated CloudFormation that describes a bundle as a stack, and the variables that lead the program to it.
struct Account {
    cloud_formation: Receiver,
    env: Vec<(&'static str, String)>,
}

impl Account {
    async fn of(env: &BTreeMap<String, String>, answer: Behaviour) -> Self {
        let cloud_formation = Receiver::start().await;
        let endpoint = cloud_formation.on("/", [answer]);
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let endpoints = [
            ("AWS_ENDPOINT_URL_CLOUDFORMATION", endpoint),
            ("AWS_ENDPOINT_URL_DYNAMODB", env["DYNAMODB_ENDPOINT"].clone()),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", env["SERVICES_ENDPOINT"].clone()),
            ("AWS_ENDPOINT_URL_S3", env["S3_ENDPOINT"].clone()),
            ("AWS_ENDPOINT_URL_LAMBDA", env["LAMBDA_ENDPOINT"].clone()),
            // The program uses only these credentials and settings.
            ("AWS_CONFIG_FILE", "/dev/null".to_owned()),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null".to_owned()),
        ];
        Self { cloud_formation, env: aws_variables(env).into_iter().chain(endpoints).collect() }
    }

    async fn admin(&self, arguments: &[&str]) -> Admin {
        Admin::run(arguments, &self.env).await
    }

    fn descriptions(&self) -> usize {
        self.cloud_formation.received("/").len()
    }
}

/// A bundle's outputs, as if it were a stack.
fn outputs(env: &BTreeMap<String, String>) -> [(&'static str, &str); 8] {
    [
        ("TableName", env["TABLE_NAME"].as_str()),
        ("SecretsPrefix", "waypost/local/"),
        ("EnvironmentName", "local"),
        ("SigningAlgorithm", "ES256"),
        ("TokenLifetime", "3600"),
        ("BaseUrl", &env["BASE_URL"]),
        ("GeoIpStore", &env["GEO_IP_STORE"]),
        ("GeoIpUpdateName", "geo-ip-update"),
    ]
}

#[contract_test]
async fn a_stack_is_worked_on_by_its_name_alone_and_described_once(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let account = Account::of(&api.env, described(&outputs(&api.env))).await;
    let create = ["--stack", "waypost", "application", "create", "--name", "By name", "--entity", "hotel", "--json"];
    let made = account.admin(&create).await.json();
    assert_eq!(account.descriptions(), 1);
    let asked = String::from_utf8_lossy(&account.cloud_formation.received("/")[0].body).into_owned();
    assert!(asked.contains("Action=DescribeStacks") && asked.contains("StackName=waypost"), "{asked}");
    assert!(accepted(&api, &text(&made, "clientId"), &text(&made, "clientSecret")).await, "{made:#}");

    // Every secret has a value, which it keeps, and no application is created unless requested.
    let provided = account.admin(&["provision", "--stack", "waypost", "--json"]).await.json();
    assert_eq!(provided, json!({ "filledSecrets": [], "application": null }));
    let arguments = ["provision", "--stack", "waypost", "--name", "First", "--entity", "hotel"];
    let said = account.admin(&arguments).await.done();
    let [id, secret] = ["CLIENT_ID=", "CLIENT_SECRET="].map(|name| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {said}")).to_owned()
    });
    assert!(accepted(&api, &id, &secret).await);
    let before = account.descriptions();
    let rotation = account.admin(&["data-keys", "rotate", "--json", "--stack", "waypost"]).await;
    assert!(rotation.err.contains(r#""action":"data-keys.rotate""#), "it is on the audit trail: {}", rotation.err);
    let rotated = rotation.json();
    assert_eq!((&rotated["unreadable"], &rotated["forgottenKeys"]), (&json!(0), &json!([])));
    // The Secrets Manager stand-in has no function for rotations.
    let failure = account.admin(&["signing-keys", "rotate", "--stack", "waypost"]).await.failed(1);
    assert!(failure.contains("could not rotate the secret waypost/local/signing-key: Invalid"), "{failure}");
    let replaced =
        account.admin(&["signing-keys", "rotate", "--emergency", "--json", "--stack", "waypost"]).await.json();
    let published = api.get("/oauth2/jwks").expect(200).await.json();
    let published: Vec<_> = [0, 1].map(|position| text(&published["keys"][position], "kid")).into();
    assert_eq!(published, [text(&replaced, "current"), text(&replaced, "next")]);
    assert_eq!(replaced["revoked"].as_array().map(Vec::len), Some(2));
    let refusal = account.admin(&["geo-ip", "lookup", "1.1.1.1", "--stack", "waypost"]).await.failed(3);
    assert!(refusal.contains("no database is published in"), "{refusal}");
    let updated = account.admin(&["geo-ip", "update", "--stack", "waypost", "--json"]).await;
    assert!(updated.code == Some(1) && updated.out.contains("no edition is configured"), "{updated:?}");
    let all = account.admin(&["application", "list", "--all", "--stack", "waypost", "--json"]).await.json();
    let ids: Vec<_> = all.as_array().expect("a list").iter().map(|found| text(found, "clientId")).collect();
    assert!(ids.contains(&text(&made, "clientId")) && ids.contains(&api.env["PLATFORM_CLIENT_ID"]), "{ids:?}");
    let failing = account.admin(&["webhook", "list", "--failing", "--stack", "waypost", "--json"]).await.json();
    assert_eq!(failing, json!([]));
    let unblocked =
        account.admin(&["application", "unblock", "192.0.2.1", "--stack", "waypost", "--json"]).await.json();
    assert_eq!(unblocked["clientsForgotten"], 0);
    assert_eq!(account.descriptions() - before, 8);
    assert!(bundle.stop().await.success());
}

/// `aws-vault` and similar tools provide credentials in this way.
#[contract_test]
async fn a_profile_may_take_its_credentials_from_a_process(suite: Arc<Suite>) {
    let env = &suite.api.env;
    let mut account = Account::of(env, described(&outputs(env))).await;
    let folder = tempfile::tempdir().expect("a folder");
    let [credentials, config] = ["credentials.json", "config"].map(|name| folder.path().join(name));
    let given = json!({
        "Version": 1, "AccessKeyId": env["AWS_ACCESS_KEY_ID"], "SecretAccessKey": env["AWS_SECRET_ACCESS_KEY"],
    });
    std::fs::write(&credentials, given.to_string()).expect("a file can be written");
    let profile = format!("[profile operator]\ncredential_process = cat {}\n", credentials.display());
    std::fs::write(&config, profile).expect("a file can be written");
    let other = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONFIG_FILE"];
    account.env.retain(|(name, _)| !other.contains(name));
    account.env.push(("AWS_CONFIG_FILE", config.display().to_string()));
    account.env.push(("AWS_PROFILE", "operator".to_owned()));
    let listed = account.admin(&["--stack", "waypost", "application", "list", "hotel-of-a-process", "--json"]).await;
    assert_eq!(listed.json(), json!([]));
    assert_eq!(account.descriptions(), 1);
}

#[contract_test]
async fn an_unknown_stack_is_refused_and_an_unreachable_one_fails(suite: Arc<Suite>) {
    let missing = error(400, "ValidationError", "Stack with id waypots does not exist");
    let account = Account::of(&suite.api.env, missing).await;
    let refusal = account.admin(&["--stack", "waypots", "webhook", "list", "--failing"]).await.failed(3);
    assert!(refusal.contains("there is no stack waypots in ") && refusal.contains("list-stacks"), "{refusal}");

    let account =
        Account::of(&suite.api.env, error(403, "AccessDenied", "not authorized to perform DescribeStacks")).await;
    let failure = account.admin(&["--stack", "waypost", "webhook", "list", "--failing"]).await.failed(1);
    assert!(failure.contains("AccessDenied: not authorized to perform DescribeStacks"), "{failure}");

    let account = Account::of(&suite.api.env, described(&[("SomethingElse", "1")])).await;
    let refusal = account.admin(&["--stack", "waypost", "webhook", "list", "--failing"]).await.failed(3);
    assert!(refusal.contains("the stack waypost has no output TableName"), "{refusal}");
}

#[contract_test]
async fn every_end_has_its_exit_code(suite: Arc<Suite>) {
    let bundle = suite.bundle();
    for wrong in [
        &["application", "list", "a b/c"][..],
        &["application", "create", "--name", "n"],
        &["data-keys", "rotate", "--forget", "--reseal-only"],
        &["geo-ip", "lookup", "1.1.1.1", "--environment", "staging"],
        &["geo-ip", "--store", "s3://databases", "lookup", "1.1.1.1"],
        &["application", "unblock", "hotel-1"],
        &["provision", "--name", "n", "--entity", "e"],
        &["provision", "--stack", "waypost"],
        &["nothing"],
    ] {
        let said = admin(bundle, wrong).await.failed(2);
        assert!(said.starts_with("error: "), "{wrong:?}: {said}");
    }
    for refused in [
        &["application", "show", "appNobody"][..],
        &["application", "remove", "appNobody"],
        &["application", "remove-key", &suite.api.env["CLIENT_ID"], "nothing"],
        &["geo-ip", "rollback", "GeoLite2-City"],
        &["geo-ip", "lookup", "1.1.1.1"],
    ] {
        let said = admin(bundle, refused).await.failed(3);
        assert!(said.starts_with("error: "), "{refused:?}: {said}");
    }
    assert!(admin(bundle, &["application", "--help"]).await.done().contains("Examples:"));
    assert!(admin(bundle, &["--help"]).await.done().contains("Exit codes:"));
}

#[contract_test]
async fn without_a_running_service_a_folder_is_refused(suite: Arc<Suite>) {
    let empty = tempfile::tempdir().expect("a folder");
    let data = empty.path().display().to_string();
    let run = async |arguments: &[&str]| Admin::run(["--data", &data].iter().chain(arguments), &[]).await;
    for command in
        [&["application", "list", "hotel"][..], &["signing-keys", "rotate"], &["webhook", "list", "--failing"]]
    {
        let refusal = run(command).await.failed(3);
        assert!(refusal.contains(&format!("make run DATA={data}")), "{refusal}");
    }
    // Databases are files, so no service is needed.
    let refusal = run(&["geo-ip", "lookup", "1.1.1.1"]).await.failed(3);
    assert!(refusal.contains("no database is published in") && refusal.contains("geo-ip/local"), "{refusal}");

    // A killed service leaves its `service.env` behind.
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    bundle.cut_power().await;
    assert!(bundle.data().join("service.env").is_file());
    let refusal = admin(&bundle, &["application", "list", "hotel"]).await.failed(3);
    assert!(refusal.contains("no service is running"), "{refusal}");
}

#[contract_test]
async fn an_operators_changes_are_on_the_audit_trail_and_beside_the_result(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let lines = |run: &Admin| -> Vec<Value> {
        run.err
            .lines()
            .filter(|line| line.starts_with('{'))
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    let create = ["application", "create", "--name", "Audited", "--entity", &entity.id, "--json"];
    let made = suite.admin(&create).await;
    let audited = lines(&made);
    let id = text(&made.json(), "clientId");
    assert_eq!(audited.len(), 1);
    let audit = &audited[0]["audit"];
    let environment = json!(suite.api.env["ENVIRONMENT"]);
    assert_eq!((&audited[0]["Environment"], &audit["action"]), (&environment, &json!("application.create")));
    assert_eq!((&audit["outcome"], &audit["subject"]), (&json!("done"), &json!(id)));

    let added = suite.admin(&["application", "add-secret", &id, "--json"]).await;
    let audited = lines(&added);
    let added = added.json();
    assert_eq!((&added["clientId"], &audited[0]["audit"]["action"]), (&json!(id), &json!("application.secret.create")));
    let subject = text(&audited[0]["audit"], "subject");
    let (application, secret) = subject.split_once('/').expect("an application and a secret");
    assert!(application == id && secret.starts_with("sec_"), "{subject}");
    assert!(!audited[0].to_string().contains(&text(&added, "clientSecret")), "a secret is never on the trail");
    let removed = suite.admin(&["application", "remove", &id, "--json"]).await;
    assert_eq!(lines(&removed)[0]["audit"]["action"], "application.remove");
    assert_eq!(removed.json()["clientId"], id);
}

#[contract_test]
async fn a_folder_says_where_its_databases_are(suite: Arc<Suite>) {
    // The shared bundle publishes no databases to the store that its `service.env` names.
    let refusal = suite.admin(&["geo-ip", "lookup", "1.1.1.1"]).await.failed(3);
    let store = &suite.api.env["GEO_IP_STORE"];
    let store = Path::new(store.strip_prefix("file://").unwrap_or(store));
    assert!(refusal.contains(&store.display().to_string()), "{refusal}");
}
