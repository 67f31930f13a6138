//! The data folder of `make run`: reasons to refuse startup, data that survives a power cut, and cleaning.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
    sync::Arc,
};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use serde_json::json;
use tokio::{process::Command, time::timeout};

use crate::harness::{
    Entity, LONG, Settings, Suite, free_port, local, project, refused_start, secret, secrets_manager,
};

async fn clean_data(data: &Path, confirm: &str) -> Output {
    let mut clean = Command::new(local().expect("the shared bundle runs it"));
    clean.arg("--data").arg(data).args(["clean-data", &format!("--confirm={confirm}")]);
    let output = clean.stdin(Stdio::null()).kill_on_drop(true).output();
    timeout(LONG, output).await.expect("it ends at once").expect("it can be run")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[contract_test]
async fn a_folder_in_use_is_not_cleaned(suite: Arc<Suite>) {
    let data = suite.bundle().data();
    let refused = clean_data(&data, "yes").await;
    assert!(!refused.status.success() && said(&refused).contains("A service is running"), "{}", said(&refused));
    assert!(data.join("table.db").exists() && data.join("secrets/provider-stripe.json").exists());
}

#[contract_test]
async fn inconsistent_data_stop_the_start_and_are_cleaned_on_request(suite: Arc<Suite>) {
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    bundle.stop().await;
    let data = bundle.data();
    let start =
        async || refused_start(&[("PORT", free_port().to_string()), ("DATA", data.display().to_string())]).await;

    for name in ["data-keys", "client-secret-pepper"] {
        let path = data.join(format!("secrets/{name}.json"));
        let away = data.join("away");
        fs::rename(&path, &away).expect("it was made");
        let said = start().await;
        assert!(said.contains(&format!("{name}.json is missing")) && said.contains("from a backup"), "{said}");
        assert!(!path.exists(), "no new value hides that the old one is missing");
        fs::rename(&away, &path).expect("it is there");
    }

    let table = data.join("table.db");
    let clean = format!("make clean-data DATA='{}'", data.display());
    fs::rename(&table, data.join("away")).expect("it was made");
    fs::write(&table, "not a database ".repeat(1000)).expect("written");
    let damaged = start().await;
    assert!(damaged.contains("table.db is damaged") && !damaged.contains("encrypt"), "{damaged}");
    assert!(damaged.contains(&clean), "the advice names this folder, and cleans no other: {damaged}");
    fs::rename(data.join("away"), &table).expect("it is there");
    bundle.start_again(Settings::default()).await;
    bundle.stop().await;

    let unasked = clean_data(&data, "").await;
    assert!(
        !unasked.status.success() && said(&unasked).contains(&format!("{clean} CONFIRM=yes")),
        "{}",
        said(&unasked)
    );
    assert!(
        said(&unasked).contains("provider-stripe"),
        "the refusal names the data that would be lost: {}",
        said(&unasked)
    );
    assert!(table.exists());
    let cleaned = clean_data(&data, "yes").await;
    assert!(cleaned.status.success(), "{}", said(&cleaned));
    assert!(!data.exists(), "{}", said(&cleaned));
}

#[contract_test]
async fn a_full_disk_is_called_so(suite: Arc<Suite>) {
    let _permit = suite.bundle_permit().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A separate half-megabyte disk that is nearly full.
    let disk =
        "mount -t tmpfs -o size=512k none \"$DATA\" && head -c 450000 /dev/zero > \"$DATA/other\" && exec \"$@\"";
    let unshared = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", disk, "sh"]).env("DATA", folder.path());
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    };
    if !unshared().arg("true").status().await.expect("unshare is installed").success() {
        return println!("skipped: this machine allows no mounts in a namespace");
    }
    let mut start = unshared();
    start.arg(local().expect("the shared bundle runs it")).arg("--project").arg(project());
    let output = start.env("PORT", free_port().to_string()).output();
    let output = timeout(LONG, output).await.expect("it ends at once").expect("it can be run");
    let said = said(&output);
    assert!(!output.status.success() && said.contains("the disk is full"), "{said}");
    assert!(!said.contains("clean-data"), "{said}");
}

#[contract_test]
async fn a_secret_that_was_acknowledged_survives_a_power_cut(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let id = secret(&api.env, "provider-stripe");
    let value = |name: &str| json!({ "clientId": name, "clientSecret": "x" }).to_string();
    let made = [("AWSCURRENT", value("current")), ("AWSPENDING", value("pending"))];
    for (label, value) in &made {
        let put = json!({
            "SecretId": id, "ClientRequestToken": uuid(&SystemRandom), "SecretString": value, "VersionStages": [label],
        });
        secrets_manager(&api.env, "PutSecretValue", &put).await.expect("it is there");
    }
    bundle.cut_power().await;
    bundle.start_again(Settings::default()).await;
    for (label, value) in &made {
        let asked = json!({ "SecretId": id, "VersionStage": label });
        let got = secrets_manager(&bundle.service_env(), "GetSecretValue", &asked).await.expect("it is there still");
        assert_eq!(got["SecretString"], *value, "{label}");
    }
    let file = fs::read_to_string(bundle.data().join("secrets/provider-stripe.json")).expect("it is there");
    assert_eq!(file.trim_end(), made[0].1, "the file has the current value");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_payment_provider_whose_secret_a_person_writes_while_it_runs_is_known(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let secrets = bundle.data().join("secrets");
    let entity = Entity::new(&api, "written".to_owned()).await;
    entity.post("/payment/provider/sim-written/connection").refused(404, "provider-not-found").await;
    fs::copy(secrets.join("provider-sim-basic.json"), secrets.join("provider-sim-written.json")).expect("copied");
    entity.post("/payment/provider/sim-written/connection").expect(201).await;
    assert!(bundle.stop().await.success());
}
