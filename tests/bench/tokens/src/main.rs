//! Issuing and validating tokens with everything in memory and nothing around it: what `make bench PART=tokens`
//! measures.
//!
//! `tokens` measures each piece of work, and prints as JSON how many nanoseconds one thread computes for one. `tokens
//! WORK COUNT` does one piece so many times, for a tool that counts instructions.

mod memory;

use std::{collections::BTreeMap, error::Error, time::Duration};

use auth::signing::SigningAlgorithm;
use auth::signing::SigningAlgorithm::{EdDsa, Es256};
use nix::time::{ClockId, clock_gettime};

use memory::{Memory, Work};

/// The pieces of work that can be measured.
const WORK: [(&str, SigningAlgorithm, Work); 8] = [
    ("es256-sign", Es256, Work::Sign),
    ("es256-issue", Es256, Work::Issue),
    ("es256-verify", Es256, Work::Verify),
    ("es256-validate", Es256, Work::Validate),
    ("eddsa-sign", EdDsa, Work::Sign),
    ("eddsa-issue", EdDsa, Work::Issue),
    ("eddsa-verify", EdDsa, Work::Verify),
    ("eddsa-validate", EdDsa, Work::Validate),
];
/// The result is the median of so many rounds of so many: the machine does other things, too.
const ROUNDS: usize = 31;
const ROUND: u32 = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, count] = arguments.as_slice() {
        let known = WORK.into_iter().find(|(known, ..)| known == name);
        let (_, algorithm, work) = known.ok_or("there is no such work")?;
        return Memory::new(algorithm)?.repeat(work, count.parse()?).await;
    }
    let mut nanoseconds = BTreeMap::new();
    for (name, algorithm, work) in WORK {
        nanoseconds.insert(name, median(&Memory::new(algorithm)?, work).await?.as_nanos());
    }
    println!("{}", serde_json::to_string(&nanoseconds)?);
    Ok(())
}

/// What one piece of work takes of a thread's time.
async fn median(memory: &Memory, work: Work) -> Result<Duration, Box<dyn Error>> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let began = computed()?;
        memory.repeat(work, ROUND).await?;
        rounds.push((computed()? - began) / ROUND);
    }
    rounds.sort_unstable();
    Ok(rounds[ROUNDS / 2])
}

/// How long this thread has computed.
fn computed() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from)
}
