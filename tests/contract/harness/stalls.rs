//! The times at which the machine stalled: a disk that is writing back gigabytes, or other users of the processors, can
//! stop everything for seconds. If one of the service's time limits expires during a stall, the service behaves
//! correctly, but not as the test expects.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{task::JoinHandle, time::sleep};

use super::{Api, Application, Table};

/// The pause between two rounds of requests.
const PAUSE: Duration = Duration::from_secs(1);
/// A round that takes longer counts as a stall. A call to the table may take ten seconds; other calls may take longer.
const LONGEST: Duration = Duration::from_secs(5);

/// Sends one request after another, and records which were slow.
pub struct Stalls {
    seen: Arc<Mutex<Seen>>,
    watcher: JoinHandle<()>,
}

struct Seen {
    /// When the current round started.
    began: Instant,
    /// When slow rounds ended, and how long they took.
    slow: Vec<(Instant, Duration)>,
}

impl Stalls {
    /// From now on, watches the service that this client uses.
    pub fn watch(api: &Api) -> Self {
        let seen = Arc::new(Mutex::new(Seen { began: Instant::now(), slow: Vec::new() }));
        let watcher = tokio::spawn(watch(api.clone(), Arc::clone(&seen)));
        Self { seen, watcher }
    }

    /// The longest stall that ended after this time or is still in progress.
    pub fn since(&self, time: Instant) -> Option<Duration> {
        let seen = self.seen.lock().expect("no holder panics");
        let ended = seen.slow.iter().filter(|(end, _)| *end > time).map(|(_, took)| *took);
        // If the watcher ended because a response violated the contract, it says nothing about the machine.
        let under_way = Some(seen.began.elapsed()).filter(|took| *took > LONGEST && !self.watcher.is_finished());
        ended.chain(under_way).max()
    }
}

/// Sends reads through a function, and writes to the table.
async fn watch(api: Api, seen: Arc<Mutex<Seen>>) {
    let token = api.token(Application::Demo, "").await;
    let list = format!("/api/managing-entity/{}/webhook/list", api.env["MANAGING_ENTITY"]);
    let table = Table::of(&api.env);
    loop {
        let began = Instant::now();
        seen.lock().expect("no holder panics").began = began;
        // The response does not matter: an error is another test's concern.
        let _ = api.get(list.as_str()).bearer(&token).attempt().await;
        table.remove("STALLS", "STALLS").await;
        sleep(PAUSE).await;
        let took = began.elapsed();
        if took > LONGEST {
            seen.lock().expect("no holder panics").slow.push((Instant::now(), took));
        }
    }
}
