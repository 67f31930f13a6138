//! The bundle: `local` with everything that it starts, using a separate port and folder.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{self, Write},
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicU16, Ordering},
};

use nix::{
    sys::{
        signal::{Signal, kill},
        statvfs::statvfs,
    },
    unistd::Pid,
};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    sync::Mutex,
};

use super::{LONG, Process, Secrets, descendants, group_members, rights, until};

/// The name of the file where `local` records the functions' calls.
const RECORD: &str = "calls.jsonl";

/// A bundle's settings: the environment variables of `make run`, and the overrides that `local` accepts for tests.
#[derive(Debug, Clone)]
pub struct Settings {
    variables: BTreeMap<&'static str, String>,
    overrides: BTreeMap<&'static str, String>,
}

impl Default for Settings {
    /// Three attempts within seconds, and no idle timeout for processes, since tests look for them.
    fn default() -> Self {
        let variables = [("RETRY_SCHEDULE", "0s,1s,1s"), ("SWEEP_INTERVAL", "500ms")];
        Self {
            variables: variables.map(|(name, value)| (name, value.to_owned())).into(),
            overrides: [("--function-idle", "24h".to_owned())].into(),
        }
    }
}

impl Settings {
    /// These settings with one variable changed.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.insert(name, value.into());
        self
    }

    /// These settings with one override changed, such as `--s3`.
    pub fn overriding(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.overrides.insert(name, value.into());
        self
    }
}

/// Memory that is available as a file system on most Linux machines.
const MEMORY: &str = "/dev/shm";
/// How much memory must be free: more than all of a run's bundles store.
const ROOM: u64 = 1 << 30;

/// A temporary folder, in memory if there is enough of it. A disk that is still writing a build's output makes its
/// users stall for many seconds.
fn fast_folder() -> io::Result<TempDir> {
    let free = statvfs(MEMORY).map(|system| system.blocks_available().saturating_mul(system.fragment_size()));
    if free.is_ok_and(|free| free >= ROOM) { tempfile::tempdir_in(MEMORY) } else { tempfile::tempdir() }
}

/// A running bundle; dropping it kills it and everything that it started.
pub struct Bundle {
    pub port: u16,
    folder: TempDir,
    /// The arguments of `local`, except the project.
    arguments: Vec<String>,
    child: Mutex<Child>,
}

impl Bundle {
    /// Starts a bundle with these secrets, as if an operator had stored them, and waits until it responds.
    pub async fn start(settings: Settings, secrets: &Secrets) -> Result<Self, String> {
        Self::start_with(settings, secrets, Vec::new()).await
    }

    /// Starts a bundle with these secrets and additional arguments for `local`.
    pub async fn start_with(settings: Settings, secrets: &Secrets, arguments: Vec<String>) -> Result<Self, String> {
        let folder = fast_folder().map_err(|error| format!("a temporary folder: {error}"))?;
        keep(secrets, &folder.path().join("data/secrets")).map_err(|error| format!("the bundle's secrets: {error}"))?;
        Self::start_in(folder, &settings, arguments).await
    }

    async fn start_in(folder: TempDir, settings: &Settings, arguments: Vec<String>) -> Result<Self, String> {
        let port = free_port();
        let child = spawn(settings, port, folder.path(), &arguments)?;
        let bundle = Self { port, folder, arguments, child: Mutex::new(child) };
        bundle.ready().await?;
        Ok(bundle)
    }

    /// Starts the bundle again on the same port, with the same data.
    pub async fn start_again(&self, settings: Settings) {
        // After a crash, the old `service.env` still exists, and does not show whether the service responds.
        let _ = fs::remove_file(self.data().join("service.env"));
        let child = spawn(&settings, self.port, self.folder.path(), &self.arguments);
        *self.child.lock().await = child.expect("it has started before");
        self.ready().await.expect("it has answered before");
    }

    async fn ready(&self) -> Result<(), String> {
        let ready = until("service.env of a bundle that answers", LONG, async || {
            if let Ok(Some(status)) = self.child.lock().await.try_wait() {
                return Some(Err(format!("the bundle ended with {status}\n{}", self.logs())));
            }
            self.data().join("service.env").exists().then_some(Ok(()))
        });
        ready.await
    }

    /// The folder with the bundle's data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The file that records the functions' calls.
    pub fn record(&self) -> PathBuf {
        self.folder.path().join(RECORD)
    }

    /// The variables in `service.env`.
    pub fn service_env(&self) -> BTreeMap<String, String> {
        variables(&fs::read_to_string(self.data().join("service.env")).expect("it is there once the service answers"))
    }

    /// The process id of `local` itself.
    pub async fn id(&self) -> i32 {
        let id = self.child.lock().await.id().expect("it has not been waited for");
        id.try_into().expect("process numbers are small")
    }

    /// All of the bundle's processes.
    pub fn processes(&self) -> Vec<Process> {
        self.child.try_lock().ok().and_then(|child| child.id()?.try_into().ok()).map(descendants).unwrap_or_default()
    }

    /// The only process with this name.
    pub async fn process(&self, program: &str) -> Process {
        until(&format!("a process of {program}"), LONG, async || {
            self.processes().into_iter().find(|process| process.is(program))
        })
        .await
    }

    /// Sends SIGTERM, and waits until `local` has ended.
    pub async fn stop(&self) -> ExitStatus {
        self.signal(Signal::SIGTERM).await;
        self.ended().await
    }

    pub async fn signal(&self, signal: Signal) {
        let id = self.id().await;
        kill(Pid::from_raw(id), signal).expect("a running process of ours");
    }

    pub async fn ended(&self) -> ExitStatus {
        let mut child = self.child.lock().await;
        let status = tokio::time::timeout(LONG, child.wait()).await.expect("a bundle that is asked to end, ends");
        status.expect("a child can be waited for")
    }

    /// Kills all of the bundle's processes at once, as a power cut would, and waits until they are gone.
    pub async fn cut_power(&self) {
        let children = self.processes();
        self.signal(Signal::SIGKILL).await;
        children.iter().for_each(Process::kill);
        self.ended().await;
        until("the end of every process of a killed bundle", LONG, async || {
            let left = group_members(&children);
            left.iter().for_each(Process::kill);
            left.is_empty().then_some(())
        })
        .await;
    }

    /// The output of `local` so far.
    pub fn output(&self) -> String {
        fs::read_to_string(self.folder.path().join("output")).unwrap_or_default()
    }

    /// The output of `local`, and the last warnings and errors of its functions.
    pub fn logs(&self) -> String {
        let mut report = String::from("\n--- output of `local`:\n");
        report += &self.output();
        for entry in fs::read_dir(self.data().join("logs")).into_iter().flatten().flatten() {
            let log = fs::read(entry.path()).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let complaints =
                log.lines().filter(|line| ["WARN", "ERROR", "panicked"].iter().any(|word| line.contains(word)));
            let last: Vec<&str> = complaints.rev().take(20).collect();
            if !last.is_empty() {
                report += &format!("--- last complaints in {}:\n", entry.file_name().display());
                last.iter().rev().for_each(|line| report += &format!("{line}\n"));
            }
        }
        report
    }

    /// The output of `local`, and all lines in the logs of its functions.
    pub fn whole_logs(&self) -> String {
        let mut all = self.output();
        for entry in fs::read_dir(self.data().join("logs")).into_iter().flatten().flatten() {
            let log = fs::read(entry.path()).expect("the log can be read");
            all.push_str(&String::from_utf8_lossy(&log));
        }
        assert!(all.contains("\"answered\""), "a function logs each request");
        all
    }
}

/// Read the record of the functions' calls first, since the folder is removed with the bundle.
impl Drop for Bundle {
    fn drop(&mut self) {
        rights::collect(&self.record());
    }
}

/// The variables in a `service.env` with this text.
pub fn variables(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Writes secrets to their folder, readable only by their owner.
fn keep(secrets: &Secrets, folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for (name, value) in secrets {
        let path = folder.join(format!("{name}.json"));
        File::options().create_new(true).write(true).mode(0o600).open(path)?.write_all(value.to_string().as_bytes())?;
    }
    Ok(())
}

/// The command that runs `local` on this port with its data in this folder; the output goes to the folder's file
/// `output`.
fn spawn(settings: &Settings, port: u16, folder: &Path, arguments: &[String]) -> Result<Child, String> {
    let output = File::options().create(true).append(true).open(folder.join("output"));
    let (out, err) =
        output.and_then(|out| Ok((out.try_clone()?, out))).map_err(|error| format!("the bundle's output: {error}"))?;
    Command::new(local()?)
        .args(["--project", &project().display().to_string(), "--stop-with-parent"])
        .arg("--record-calls")
        .arg(folder.join(RECORD))
        .args(settings.overrides.iter().flat_map(|(name, value)| [*name, value.as_str()]))
        .args(arguments)
        .env("PORT", port.to_string())
        .env("DATA", folder.join("data"))
        // One line per request would bury the lines that a failing test needs.
        .env("QUIET", "1")
        .envs(&settings.variables)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("`local` does not start: {error}"))
}

/// Runs `local` with these variables; asserts that it soon ends with an error, and returns its output.
pub async fn refused_start(variables: &[(&str, String)]) -> String {
    let mut command = Command::new(local().expect("the shared bundle runs it"));
    command
        .args(["--project", &project().display().to_string()])
        .envs(variables.iter().map(|(name, value)| (name, value)));
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(LONG, output).await.expect("it ends at once").expect("it can be run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "the start should fail: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// The program `local`, which is in the same folder as this program.
pub fn local() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("the folder of this program: {error}"))?;
    let path = own.ancestors().nth(2).map(|folder| folder.join("local")).unwrap_or_default();
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!(
            "{} is not built; `cargo build --package local --package local-functions --bins` builds it and the \
             functions",
            path.display()
        ))
    }
}

pub fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A free port below the range for outgoing connections, so that no such connection takes it before the bundle does, or
/// while the bundle is down.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let offset = u16::try_from(std::process::id() % 8_000).expect("less than 8000");
    std::iter::repeat_with(|| 10_000 + (offset + NEXT.fetch_add(1, Ordering::Relaxed)) % 8_000)
        .take(8_000)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("one of 8000 ports is free")
}
