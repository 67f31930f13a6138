//! Child processes: started in one process group on first use, restarted when they die, ended when idle, and never left
//! behind.
//!
//! The group's leader is a guard: a shell that waits for a pipe from this process to close, then kills the whole group.
//! However this process ends, the kernel closes the pipe, so not even SIGKILL leaves children behind. The children are
//! in a separate group, so they do not receive the terminal's Ctrl-C; only this process receives it, and shuts down in
//! order.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    process::{Child, ChildStdin, Command},
    sync::{Mutex, Notify, watch},
    time,
};

const GUARD: &str = r#"trap "" INT TERM HUP; read -r _; kill -KILL 0"#;

/// The shortest and the longest wait between a death and the restart. The wait doubles with each death, and starts over
/// once a process has lived longer than `LAST_RESTART`.
const FIRST_RESTART: Duration = Duration::from_millis(50);
const LAST_RESTART: Duration = Duration::from_secs(5);
/// How long an idle process has to end before it is killed.
const LAST_WORK: Duration = Duration::from_secs(2);

pub struct ProcessGroup {
    guard: Mutex<(Child, Option<ChildStdin>)>,
    id: i32,
    logs: PathBuf,
    ending: watch::Sender<bool>,
}

/// A child process that is started on first use, restarted when it dies, and ended when idle.
#[derive(Clone)]
pub struct Supervised {
    /// The number of times that the process has died. Each time, the work in progress is lost.
    pub deaths: watch::Receiver<u64>,
    demand: watch::Sender<Demand>,
    restart: Arc<Notify>,
}

/// The number of uses of a process, and how long it has been idle.
#[derive(Debug)]
struct Demand {
    uses: usize,
    /// When the last use ended or the process started.
    idle_since: Instant,
    /// Whether the process is running. If it is not running, a use wakes the task that starts it.
    runs: bool,
}

/// A use of a process, which keeps the process running until it is dropped.
pub struct Use(watch::Sender<Demand>);

/// The source of a process's work.
pub trait WorkSource: Send + 'static {
    /// Detaches the process if it has no work in progress, and returns whether it did. Work that arrives later waits
    /// for the next process.
    fn leave(&self) -> bool;
}

/// How a process ended.
enum End {
    /// It died or failed to start, for this reason.
    Died(String),
    /// It was ended for being idle.
    Idle,
}

impl Supervised {
    /// Starts the process if necessary, and keeps it running until the use is dropped.
    pub fn want(&self) -> Use {
        self.demand.send_if_modified(|demand| {
            demand.uses += 1;
            !demand.runs
        });
        Use(self.demand.clone())
    }

    /// Kills the process, so that a new one replaces it.
    pub fn restart(&self) {
        self.restart.notify_one();
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.send_if_modified(|demand| {
            demand.uses -= 1;
            demand.idle_since = Instant::now();
            false
        });
    }
}

/// Waits until the process has been idle this long.
async fn idle(demand: &watch::Sender<Demand>, limit: Duration) {
    loop {
        let left = {
            let demand = demand.borrow();
            if demand.uses > 0 { limit } else { limit.saturating_sub(demand.idle_since.elapsed()) }
        };
        if left.is_zero() {
            return;
        }
        time::sleep(left).await;
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

    /// A command whose process will belong to the group, with only the environment variables that every program needs.
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

    /// Keeps `program` running from its first use until it has been idle for `idle_limit`. `prepare` sets the arguments
    /// and the environment at every start; the work source that it returns is dropped as soon as that process has
    /// ended.
    pub fn keep_running<W: WorkSource>(
        self: &Arc<Self>,
        name: &str,
        program: impl AsRef<OsStr>,
        idle_limit: Duration,
        prepare: impl Fn(&mut Command) -> W + Send + Sync + 'static,
    ) -> Supervised {
        let (count, deaths) = watch::channel(0);
        let demand = watch::Sender::new(Demand { uses: 0, idle_since: Instant::now(), runs: false });
        let supervised = Supervised { deaths, demand, restart: Arc::new(Notify::new()) };
        let group = Arc::clone(self);
        let restart = Arc::clone(&supervised.restart);
        let demand = supervised.demand.clone();
        let name = name.to_owned();
        let program = program.as_ref().to_owned();
        tokio::spawn(async move {
            let mut ending = group.ending.subscribe();
            let mut wanted = demand.subscribe();
            let mut wait = FIRST_RESTART;
            tokio::select! {
                _ = wanted.wait_for(|demand| demand.uses > 0) => {}
                _ = ending.changed() => return,
            }
            loop {
                let started = Instant::now();
                let ended = group.run_once(&name, &program, &prepare, &restart, (&demand, idle_limit)).await;
                if *ending.borrow() {
                    return;
                }
                let End::Died(ended) = ended else {
                    wait = FIRST_RESTART;
                    // A use that began while the process was shutting down has already been counted.
                    tokio::select! {
                        _ = wanted.wait_for(|demand| demand.uses > 0) => continue,
                        _ = ending.changed() => return,
                    }
                };
                count.send_modify(|deaths| *deaths += 1);
                if started.elapsed() > LAST_RESTART {
                    wait = FIRST_RESTART;
                }
                tracing::warn!("{name} exited ({ended}) and is restarted; see {}/{name}.log", group.logs.display());
                tokio::select! {
                    () = time::sleep(wait) => {}
                    _ = ending.changed() => return,
                }
                wait = LAST_RESTART.min(wait * 2);
            }
        });
        supervised
    }

    async fn run_once<W: WorkSource>(
        &self,
        name: &str,
        program: &OsStr,
        prepare: &(impl Fn(&mut Command) -> W + Send + Sync),
        restart: &Notify,
        (demand, idle_limit): (&watch::Sender<Demand>, Duration),
    ) -> End {
        let runs = |runs| {
            demand.send_if_modified(|demand| {
                (demand.runs, demand.idle_since) = (runs, Instant::now());
                false
            })
        };
        let spawned = self.command(name, program).and_then(|mut command| {
            let source = prepare(&mut command);
            Ok((command.spawn()?, source))
        });
        let (mut child, source) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => return End::Died(error.to_string()),
        };
        runs(true);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                () = restart.notified() => match child.kill().await {
                    Ok(()) => return End::Died("killed after a timeout".to_owned()),
                    Err(error) => break Err(error),
                },
                () = idle(demand, idle_limit) => {
                    // From here on, any use of the process wakes the task that starts the process.
                    runs(false);
                    if source.leave() {
                        end_idle(&mut child).await;
                        return End::Idle;
                    }
                    runs(true);
                }
            }
        };
        End::Died(status.map_or_else(|error| error.to_string(), |status| status.to_string()))
    }

    /// Ends every process in the group, and returns once the guard has ended as well.
    pub async fn end(&self) -> io::Result<()> {
        self.ending.send_replace(true);
        let mut guard = self.guard.lock().await;
        drop(guard.1.take());
        guard.0.wait().await.map(drop)
    }
}

/// Asks a process to end, and kills it if it keeps running.
async fn end_idle(child: &mut Child) {
    if let Some(id) = child.id().and_then(|id| id.try_into().ok()) {
        // The process may have just ended.
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    if time::timeout(LAST_WORK, child.wait()).await.is_err() {
        // The process has no work in progress. If it survives this kill, the guard will kill it.
        let _ = child.kill().await;
    }
}

/// The environment variables of this process that any program may need: the paths of tools and temporary files, and the
/// trusted certificate authorities.
#[expect(clippy::disallowed_methods, reason = "passed to other programs, and not used for a decision here")]
fn inherited() -> impl Iterator<Item = (String, std::ffi::OsString)> {
    ["PATH", "HOME", "TMPDIR", "LANG", "CARGO_HOME", "RUSTUP_HOME", "RUST_BACKTRACE", "SSL_CERT_FILE", "SSL_CERT_DIR"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A work source that can be busy, and that counts the processes attached to it.
    struct CountedUse {
        present: Arc<AtomicUsize>,
        busy: Arc<AtomicUsize>,
    }

    impl WorkSource for CountedUse {
        fn leave(&self) -> bool {
            self.busy.load(Ordering::SeqCst) == 0
        }
    }

    impl Drop for CountedUse {
        fn drop(&mut self) {
            self.present.fetch_sub(1, Ordering::SeqCst);
        }
    }

    struct Fixture {
        process: Supervised,
        starts: Arc<AtomicUsize>,
        present: Arc<AtomicUsize>,
        busy: Arc<AtomicUsize>,
        _group: Arc<ProcessGroup>,
        _logs: tempfile::TempDir,
    }

    const IDLE: Duration = Duration::from_millis(20);
    /// Longer than any machine needs for a test.
    const LONG: Duration = Duration::from_secs(300);

    fn supervised(script: &'static str) -> Fixture {
        let logs = tempfile::tempdir().expect("a temporary folder");
        let group = ProcessGroup::start(logs.path().to_owned()).expect("a shell starts");
        let [starts, present, busy]: [Arc<AtomicUsize>; 3] = Default::default();
        let counters = (Arc::clone(&starts), Arc::clone(&present), Arc::clone(&busy));
        let process = group.keep_running("test", "sh", IDLE, move |command| {
            command.args(["-c", script]);
            let (starts, present, busy) = &counters;
            starts.fetch_add(1, Ordering::SeqCst);
            present.fetch_add(1, Ordering::SeqCst);
            CountedUse { present: Arc::clone(present), busy: Arc::clone(busy) }
        });
        Fixture { process, starts, present, busy, _group: group, _logs: logs }
    }

    async fn until(count: &AtomicUsize, wanted: usize) {
        let reached = async {
            while count.load(Ordering::SeqCst) != wanted {
                tokio::task::yield_now().await;
            }
        };
        time::timeout(LONG, reached).await.expect("at last");
    }

    #[tokio::test]
    async fn an_idle_process_is_ended_and_started_again_by_the_next_use() {
        for script in ["exec sleep 60", "trap '' TERM; while :; do sleep 0.1; done"] {
            let fixture = supervised(script);
            for round in 1..=2 {
                let used = fixture.process.want();
                until(&fixture.starts, round).await;
                drop(used);
                until(&fixture.present, 0).await;
            }
            assert_eq!(*fixture.process.deaths.borrow(), 0, "an ended process does not count as dead");
        }
    }

    #[tokio::test]
    async fn a_process_with_a_use_or_with_work_in_progress_is_not_ended() {
        let fixture = supervised("exec sleep 60");
        let used = fixture.process.want();
        until(&fixture.present, 1).await;
        time::sleep(IDLE * 5).await;
        assert_eq!(fixture.present.load(Ordering::SeqCst), 1, "it is used");
        fixture.busy.store(1, Ordering::SeqCst);
        drop(used);
        time::sleep(IDLE * 5).await;
        assert_eq!(fixture.present.load(Ordering::SeqCst), 1, "it has work in progress");
        fixture.busy.store(0, Ordering::SeqCst);
        until(&fixture.present, 0).await;
        assert_eq!(fixture.starts.load(Ordering::SeqCst), 1);
    }
}
