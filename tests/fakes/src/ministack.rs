//! ministack, a third-party AWS emulator: the reference for the local stand-ins, and an S3 for tests.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{LONG, until};

/// The folder with the tools that `make tools` installs.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin");

/// A running ministack, which starts out empty. It serves every program on this machine, and stops when this value is
/// dropped.
pub struct Ministack {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Ministack {
    /// Starts ministack with these services, by ministack's names, and waits until it responds.
    pub async fn start(services: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Bind the socket here and pass it on as standard input, so that no other program can take the port in between.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let child = Command::new(Path::new(TOOLS).join("hypercorn"))
            .args(["ministack.app:app", "--bind", "fd://0", "--workers", "0", "--keep-alive", "3600"])
            .args(["--log-level", "WARNING"])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", folder.path())
            .env("GATEWAY_PORT", address.port().to_string())
            .env("SERVICES", services)
            .env("LOG_LEVEL", "WARNING")
            // Without this, ministack opens ports for these services, and looks for containers from earlier runs.
            .env("IOT_MTLS_ENABLED", "0")
            .env("SFTP_ENABLED", "0")
            .env("DOCKER_HOST", "unix:///nonexistent")
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .spawn()
            .expect("`make tools` has installed ministack");
        let mut ministack = Self { child, address, _folder: folder };
        let client = reqwest::Client::builder().no_proxy().build().expect("a client needs nothing");
        until("a response of ministack", LONG, async || {
            let ended = ministack.child.try_wait().expect("a child process");
            assert!(ended.is_none(), "ministack ended: {ended:?}");
            TcpStream::connect(address).ok()?;
            client.get(format!("http://{address}/_ministack/health")).send().await.ok()
        })
        .await;
        ministack
    }

    /// The base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Ministack {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
