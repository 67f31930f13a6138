//! Publishing over HTTP: as fast as the service acknowledges, or at a constant rate.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
    time::{self, MissedTickBehavior},
};

use crate::{
    connection::{Connection, TaskResult},
    endpoint::MARK,
};

const CLIENTS: usize = 32;

/// The address, path and token for publishing.
pub struct Target {
    pub address: String,
    pub path: String,
    pub token: String,
}

/// A publisher and its events.
#[derive(Clone)]
pub struct Publisher {
    address: String,
    path: Arc<str>,
    authorization: Arc<str>,
    /// The size of a request's body, in bytes.
    size: usize,
    next: Arc<AtomicUsize>,
}

/// An acknowledged event.
#[derive(Debug, Clone, Copy)]
pub struct Published {
    pub number: usize,
    /// When the publish request began.
    pub began: Instant,
    /// How long the acknowledgement took.
    pub acknowledged: Duration,
}

impl Publisher {
    /// A publisher of events of this size, which `next` numbers.
    pub fn new(target: Target, size: usize, next: &Arc<AtomicUsize>) -> Self {
        Self {
            address: target.address,
            path: target.path.into(),
            authorization: format!("Bearer {}", target.token).into(),
            size,
            next: Arc::clone(next),
        }
    }

    /// All clients publish as fast as the service responds, until this many events have been published or this much
    /// time has passed.
    pub async fn at_full_speed(&self, events: usize, limit: Duration) -> TaskResult<Vec<Published>> {
        let left = Arc::new(AtomicUsize::new(events));
        let began = Instant::now();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS.min(events) {
            let publisher = self.clone();
            let left = Arc::clone(&left);
            let mut connection = Connection::open(&self.address).await?;
            clients.spawn(async move {
                let mut published = Vec::new();
                let one_less = |left: usize| left.checked_sub(1);
                while began.elapsed() < limit
                    && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
                {
                    published.push(publisher.publish(&mut connection).await?);
                }
                TaskResult::Ok(published)
            });
        }
        all(clients).await
    }

    /// Publishes this many events per second, without waiting for earlier acknowledgements.
    pub async fn at_rate(&self, rate: u32, events: usize) -> TaskResult<Vec<Published>> {
        let (ticks, ticking) = mpsc::unbounded_channel();
        let ticking = Arc::new(Mutex::new(ticking));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let publisher = self.clone();
            let ticking = Arc::clone(&ticking);
            let mut connection = Connection::open(&self.address).await?;
            clients.spawn(async move {
                let mut published = Vec::new();
                loop {
                    let tick = ticking.lock().await.recv().await;
                    let Some(()) = tick else { return TaskResult::Ok(published) };
                    published.push(publisher.publish(&mut connection).await?);
                }
            });
        }
        let mut interval = time::interval(Duration::from_secs(1) / rate);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for _ in 0..events {
            interval.tick().await;
            // An error here means that all clients have failed; their errors are returned below.
            if ticks.send(()).is_err() {
                break;
            }
        }
        drop(ticks);
        all(clients).await
    }

    async fn publish(&self, connection: &mut Connection) -> TaskResult<Published> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let headers = [("authorization", self.authorization.as_ref()), ("content-type", "application/json")];
        let began = Instant::now();
        let answer = connection.post(&self.path, &headers, self.event(number)).await?;
        if answer.status != 202 {
            let body = String::from_utf8_lossy(&answer.body);
            return Err(format!("a publication was answered with {}: {body}", answer.status).into());
        }
        Ok(Published { number, began, acknowledged: answer.time })
    }

    fn event(&self, number: usize) -> String {
        let event =
            |text: &str| format!(r#"{{"type":"booking.created","data":{{{MARK}{number},"text":{}}}}}"#, json!(text));
        let filling = self.size.saturating_sub(event("").len());
        event(&"x".repeat(filling))
    }
}

async fn all(mut clients: JoinSet<TaskResult<Vec<Published>>>) -> TaskResult<Vec<Published>> {
    let mut published = Vec::new();
    while let Some(client) = clients.join_next().await {
        published.extend(client??);
    }
    Ok(published)
}
