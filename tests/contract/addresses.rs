//! Real connections to endpoint addresses, on a machine whose only interface is `lo`. This machine has public and
//! private addresses, and its name server gives wrong answers. No packet can leave the machine.

use std::{fs, process::Stdio, sync::Arc};

use contract_test::contract_test;
use tokio::process::Command;

use crate::harness::Suite;

/// Separate namespaces: users (which the others require), network (with `lo` only), and mounts, so that the test's name
/// server resolves names.
const ALONE: &str = r#"
set -e
ip link set lo up
for address in $ADDRESSES; do ip addr add "$address" dev lo nodad 2>/dev/null || ip addr add "$address" dev lo; done
mount --bind "$FOLDER/resolv.conf" /etc/resolv.conf
mount --bind "$FOLDER/nsswitch.conf" /etc/nsswitch.conf
mount --bind "$FOLDER/hosts" /etc/hosts
exec "$TESTS" --ignored --nocapture --exact "$TEST"
"#;

/// System resolver options with which a slow machine's late answer does not cause a second question.
const PATIENT: &str = "options timeout:30 attempts:1\n";

/// A public address of `lo`.
pub const PUBLIC: &str = "93.184.216.34";
/// A public address that nothing listens on.
pub const SILENT: &str = "93.184.216.35";
/// A public IPv6 address.
pub const PUBLIC_V6: &str = "2606:2800:220:1::34";
/// Addresses of each banned kind, which nothing may connect to.
pub const BANNED: &[&str] =
    &["10.0.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1", "198.18.0.1", "fd00::1"];

#[contract_test]
async fn only_public_addresses_are_dialled_regardless_of_dns(suite: Arc<Suite>) {
    let test = "addresses_alone::only_public_addresses_are_dialled_and_only_those_that_were_checked";
    alone(&suite, PATIENT, test).await;
}

/// Runs an on-demand test on a machine whose only interface is `lo`. The system's resolver queries port 53 on that
/// machine, using these options.
pub async fn alone(suite: &Suite, options: &str, test: &str) {
    // The test starts its own bundle there.
    let _permit = suite.bundle_permit().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in [
        ("resolv.conf", format!("nameserver 127.0.0.1\n{options}")),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
        ("hosts", "127.0.0.1 localhost\n".to_owned()),
    ] {
        fs::write(folder.path().join(name), content).expect("a file in a temporary folder");
    }
    if let Some(refusal) = refusal().await {
        println!("skipped: this machine allows no namespaces: {refusal}");
        return;
    }
    let addresses = [PUBLIC, SILENT, PUBLIC_V6].iter().chain(BANNED).map(|address| {
        let bits = if address.contains(':') { 128 } else { 32 };
        format!("{address}/{bits}")
    });
    let output = unshare()
        .args(["sh", "-c", ALONE])
        .env("ADDRESSES", addresses.collect::<Vec<_>>().join(" "))
        .env("FOLDER", folder.path())
        .env("TEST", test)
        .env("TESTS", std::env::current_exe().expect("this program has a path"))
        .output()
        .await
        .expect("unshare can be run");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
    println!("{said}");
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--mount"]).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// The kernel's error, if it forbids namespaces.
async fn refusal() -> Option<String> {
    let output = unshare().arg("true").output().await.expect("unshare, of util-linux, is installed");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
