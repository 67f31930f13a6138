//! Child processes: started in one process group, restarted when they die, and never left behind.
//!
//! The group's leader is a guard, a shell that waits for the end of a pipe from this process and then kills the whole group.
//! The kernel closes the pipe however this process ends, so that even SIGKILL leaves nothing running. A group of its own also
//! keeps the terminal's Ctrl-C from the children: only this process gets it, and ends in order.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    process::{Child, ChildStdin, Command},
    sync::{Mutex, Notify, watch},
    time,
};

const GUARD: &str = r#"trap "" INT TERM HUP; read -r _; kill -KILL 0"#;

/// The first and the longest wait between a death and the restart. The wait doubles with each death, and is the first again
/// for a process that lived longer than the longest.
const FIRST_RESTART: Duration = Duration::from_millis(50);
const LAST_RESTART: Duration = Duration::from_secs(5);

pub struct ProcessGroup {
    guard: Mutex<(Child, Option<ChildStdin>)>,
    id: i32,
    logs: PathBuf,
    ending: watch::Sender<bool>,
}

/// A child that is started when it is wanted, and again whenever it dies.
#[derive(Clone)]
pub struct Supervised {
    /// How often the process has died. With each death, its work is lost.
    pub deaths: watch::Receiver<u64>,
    wanted: watch::Sender<bool>,
    restart: Arc<Notify>,
}

impl Supervised {
    /// Starts the process, if it was not wanted before.
    pub fn want(&self) {
        self.wanted.send_if_modified(|wanted| !std::mem::replace(wanted, true));
    }

    /// Kills the process, so that a fresh one takes its place.
    pub fn restart(&self) {
        self.restart.notify_one();
    }
}

impl ProcessGroup {
    /// An empty group, whose members write their output to files in `logs`.
    pub fn start(logs: PathBuf) -> io::Result<Arc<Self>> {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let id = guard.id().and_then(|id| id.try_into().ok()).ok_or(io::ErrorKind::NotFound)?;
        let pipe = guard.stdin.take();
        Ok(Arc::new(Self { guard: Mutex::new((guard, pipe)), id, logs, ending: watch::Sender::new(false) }))
    }

    /// A command whose process will belong to the group, with an empty environment but for what every program needs.
    fn command(&self, name: &str, program: impl AsRef<OsStr>) -> io::Result<Command> {
        let log = File::options().create(true).append(true).open(self.logs.join(format!("{name}.log")))?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(inherited())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(self.id);
        Ok(command)
    }

    /// Keeps `program` running from when it is first wanted. `prepare` gives it arguments and environment at every start; the
    /// value that it returns is dropped as soon as that process has ended.
    pub fn keep_running<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        program: impl AsRef<OsStr>,
        prepare: impl Fn(&mut Command) -> T + Send + Sync + 'static,
    ) -> Supervised {
        let (count, deaths) = watch::channel(0);
        let supervised = Supervised { deaths, wanted: watch::Sender::new(false), restart: Arc::new(Notify::new()) };
        let (group, restart) = (Arc::clone(self), Arc::clone(&supervised.restart));
        let mut wanted = supervised.wanted.subscribe();
        let (name, program) = (name.to_owned(), program.as_ref().to_owned());
        tokio::spawn(async move {
            let mut ending = group.ending.subscribe();
            let mut wait = FIRST_RESTART;
            tokio::select! {
                wanted = wanted.wait_for(|wanted| *wanted) => if wanted.is_err() { return },
                _ = ending.changed() => return,
            }
            loop {
                let started = Instant::now();
                let ended = group.run_once(&name, &program, &prepare, &restart).await;
                if *ending.borrow() {
                    return;
                }
                count.send_modify(|deaths| *deaths += 1);
                if started.elapsed() > LAST_RESTART {
                    wait = FIRST_RESTART;
                }
                tracing::warn!("{name} ended ({ended}), starting it again; see {}/{name}.log", group.logs.display());
                tokio::select! {
                    () = time::sleep(wait) => {}
                    _ = ending.changed() => return,
                }
                wait = LAST_RESTART.min(wait * 2);
            }
        });
        supervised
    }

    async fn run_once<T: Send>(
        &self,
        name: &str,
        program: &OsStr,
        prepare: &(impl Fn(&mut Command) -> T + Send + Sync),
        restart: &Notify,
    ) -> String {
        let spawned = self.command(name, program).and_then(|mut command| {
            let held = prepare(&mut command);
            Ok((command.spawn()?, held))
        });
        let (mut child, _held) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => return error.to_string(),
        };
        let status = tokio::select! {
            status = child.wait() => status,
            () = restart.notified() => match child.kill().await {
                Ok(()) => return "killed after a time-out".to_owned(),
                Err(error) => Err(error),
            },
        };
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Ends every process of the group, and returns when the guard is gone, too.
    pub async fn end(&self) -> io::Result<()> {
        self.ending.send_replace(true);
        let mut guard = self.guard.lock().await;
        drop(guard.1.take());
        guard.0.wait().await.map(drop)
    }
}

/// The variables of this process's environment that a program may need: where tools and temporary files are, and which
/// authorities to trust.
#[expect(clippy::disallowed_methods, reason = "handed on to other programs, never read for a decision of ours")]
fn inherited() -> impl Iterator<Item = (String, std::ffi::OsString)> {
    ["PATH", "HOME", "TMPDIR", "LANG", "CARGO_HOME", "RUSTUP_HOME", "RUST_BACKTRACE", "SSL_CERT_FILE", "SSL_CERT_DIR"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)))
}
