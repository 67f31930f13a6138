//! The data folder of `make run`: what stops a start, and how the folder is cleaned.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
    sync::Arc,
};

use tokio::{process::Command, time::timeout};

use crate::harness::{LONG, Settings, Suite, free_port, local, project, refused_start, tests};

tests![
    a_folder_in_use_is_not_cleaned,
    data_that_do_not_fit_together_stop_the_start_and_are_cleaned_when_asked,
    a_full_disk_is_called_so,
];

async fn clean_data(data: &Path, confirm: &str) -> Output {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "clean-data", &format!("DATA={}", data.display())]);
    make.arg(format!("CONFIRM={confirm}")).current_dir(project()).stdin(Stdio::null()).kill_on_drop(true);
    timeout(LONG, make.output()).await.expect("it ends at once").expect("make is installed")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn a_folder_in_use_is_not_cleaned(suite: Arc<Suite>) {
    let data = suite.bundle().data();
    let refused = clean_data(&data, "yes").await;
    assert!(!refused.status.success() && said(&refused).contains("A service runs"), "{}", said(&refused));
    assert!(data.join("table.db").exists() && data.join("secrets/provider-stripe.json").exists());
}

async fn data_that_do_not_fit_together_stop_the_start_and_are_cleaned_when_asked(suite: Arc<Suite>) {
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    bundle.stop().await;
    let data = bundle.data();
    let start =
        async || refused_start(&[("PORT", free_port().to_string()), ("DATA", data.display().to_string())]).await;

    for name in ["data-keys", "client-secret-pepper"] {
        let (path, away) = (data.join(format!("secrets/{name}.json")), data.join("scratch/away"));
        fs::rename(&path, &away).expect("it was made");
        let said = start().await;
        assert!(said.contains(&format!("{name}.json is missing")) && said.contains("from a copy"), "{said}");
        assert!(!path.exists(), "a new value would hide that the old one is missing");
        fs::rename(&away, &path).expect("it is there");
    }

    let table = data.join("table.db");
    fs::rename(&table, data.join("scratch/away")).expect("it was made");
    fs::write(&table, "not a database ".repeat(1000)).expect("written");
    let damaged = start().await;
    assert!(damaged.contains("table.db is damaged") && !damaged.contains("encrypt"), "{damaged}");
    fs::rename(data.join("scratch/away"), &table).expect("it is there");
    bundle.start_again(Settings::default()).await;
    bundle.stop().await;

    let unasked = clean_data(&data, "").await;
    assert!(!unasked.status.success() && said(&unasked).contains("CONFIRM=yes"), "{}", said(&unasked));
    assert!(said(&unasked).contains("provider-stripe"), "it names what would be lost: {}", said(&unasked));
    assert!(table.exists());
    let cleaned = clean_data(&data, "yes").await;
    assert!(cleaned.status.success(), "{}", said(&cleaned));
    assert!(!data.exists(), "{}", said(&cleaned));
}

async fn a_full_disk_is_called_so(suite: Arc<Suite>) {
    let _permit = suite.no_other_bundle().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A disk of its own, which is full as soon as there is a file of half a megabyte.
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
