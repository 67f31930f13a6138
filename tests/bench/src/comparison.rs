//! The bundle beside another sender: the same events to the same endpoint on the same machine, in turn.
//!
//! A machine's speed drifts, so a figure of one side says something beside the other's of the same round only.

use std::{
    error::Error,
    process::id,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    endpoint::Endpoint,
    load::{Publisher, Target},
    peer::Peer,
    report,
    run::{CALM, ENDPOINTS, FULL, Load, MOST_EVENTS, Run, SIZE, WARM_UP},
    stand::{Setup, Stand},
    usage::{Computed, OURS, Usage},
};

/// How often each side is measured.
pub const ROUNDS: usize = 3;
/// Events that are numbered at most: those of full loads and calm ones, of both sides.
const EVENTS: usize = 2 * (ROUNDS + 1) * ENDPOINTS.len() * MOST_EVENTS;
/// How long what follows an arrival may take to be written, so that it burdens neither side's next run.
const SETTLING: Duration = Duration::from_secs(2);

/// One side's figures of one round.
pub struct Side {
    pub calm: Run,
    pub calmly: Computed,
    pub full: Run,
    pub at_full_load: Computed,
}

/// Both sides, one after the other.
pub struct Round {
    pub ours: Side,
    pub peers: Side,
}

enum Sender<'a> {
    Bundle(&'a Stand),
    Peer(&'a Peer),
}

/// Measures and prints both.
pub async fn measure(peer: &Peer) -> Result<(), Box<dyn Error>> {
    let stand = Stand::start(Setup { release: &OURS, ..Setup::default() }).await?;
    let most = ENDPOINTS.into_iter().max().unwrap_or_default();
    let endpoint = Endpoint::start(most, EVENTS).await?;
    let bench = Bench { endpoint, next: Arc::default() };
    let (ours, peers) = (Sender::Bundle(&stand), Sender::Peer(peer));
    for endpoints in ENDPOINTS {
        for sender in [&ours, &peers] {
            sender.subscribe(endpoints, &bench.endpoint.address).await?;
            bench.run(sender, endpoints, WARM_UP).await?;
        }
    }
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        for endpoints in ENDPOINTS {
            eprintln!("Round {round} of {ROUNDS}, {endpoints} endpoints");
            let ours = bench.side(&ours, endpoints).await?;
            rounds.push(Round { ours, peers: bench.side(&peers, endpoints).await? });
        }
    }
    report::comparison(Peer::NAME, &rounds);
    Ok(())
}

struct Bench {
    endpoint: Endpoint,
    next: Arc<AtomicUsize>,
}

impl Bench {
    async fn side(&self, sender: &Sender<'_>, endpoints: usize) -> Result<Side, Box<dyn Error>> {
        let (calm, calmly) = self.run(sender, endpoints, CALM).await?;
        let (full, at_full_load) = self.run(sender, endpoints, FULL).await?;
        Ok(Side { calm, calmly, full, at_full_load })
    }

    async fn run(&self, sender: &Sender<'_>, endpoints: usize, load: Load) -> Result<(Run, Computed), Box<dyn Error>> {
        let publisher = Publisher::new(sender.target(endpoints), SIZE, &self.next);
        let before = sender.computed()?;
        let run = Run::of(&publisher, &self.endpoint, endpoints, load).await?;
        // What is written after an arrival is part of what a delivery costs.
        sleep(SETTLING).await;
        let after = sender.computed()?;
        let difference = Computed { all: after.all - before.all, sender: after.sender - before.sender };
        Ok((run, difference))
    }
}

impl Sender<'_> {
    /// Has so many paths of the endpoint get each event.
    async fn subscribe(&self, endpoints: usize, address: &str) -> Result<(), Box<dyn Error>> {
        let urls: Vec<String> = (0..endpoints).map(|path| format!("{address}/{path}")).collect();
        match self {
            Self::Bundle(stand) => {
                for url in &urls {
                    stand.hook(&subscriber(endpoints), url).await?;
                }
                Ok(())
            }
            Self::Peer(peer) => peer.subscribe(&subscriber(endpoints), &urls).await,
        }
    }

    fn target(&self, endpoints: usize) -> Target {
        match self {
            Self::Bundle(stand) => stand.target(&subscriber(endpoints)),
            Self::Peer(peer) => peer.target(&subscriber(endpoints)),
        }
    }

    fn computed(&self) -> Result<Computed, Box<dyn Error>> {
        match self {
            Self::Bundle(stand) => Ok(Usage::of(stand.bundle)?.computed()),
            Self::Peer(peer) => peer.computed(),
        }
    }
}

/// Who has so many webhooks, in this run alone: a peer keeps what an earlier one made.
fn subscriber(endpoints: usize) -> String {
    format!("bench-{}-{endpoints}", id())
}
