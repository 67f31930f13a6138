//! Tokens: what issuing and validating one costs, in a core's time and in instructions, and how many there are in a
//! second.
//!
//! Three times the same work, with more around it each time: in one thread with everything in memory (the program
//! `tokens`); the function as it is deployed, alone, with a table that answers from memory; and all of it through the
//! local gateway.

use std::{
    collections::BTreeMap,
    error::Error,
    io::ErrorKind,
    process::Command,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use crate::{
    connection::{Connection, TaskResult},
    function::Subject,
    memory_table::MemoryTable,
    process::computed,
    report,
    stand::{FORM, Setup, Stand},
    times::Times,
    usage::{TOKEN, Usage},
};

/// What the program with everything in memory does, and how the report calls it.
const WORK: [(&str, &str); 8] = [
    ("es256-sign", "ES256 signature alone (aws-lc-rs)"),
    ("es256-issue", "a token issued, ES256"),
    ("es256-verify", "ES256 verification alone (aws-lc-rs)"),
    ("es256-validate", "a token validated, ES256"),
    ("eddsa-sign", "EdDSA signature alone (aws-lc-rs)"),
    ("eddsa-issue", "a token issued, EdDSA"),
    ("eddsa-verify", "EdDSA verification alone (aws-lc-rs)"),
    ("eddsa-validate", "a token validated, EdDSA"),
];
const PROGRAM: &str = "target/release/tokens";
/// Instructions are counted by the difference, so that the start of the program is not counted.
const COUNTED: [u32; 2] = [100, 600];
/// How many tokens the function issues alone, after it has become warm.
const ALONE: u32 = 5_000;
const WARM_UP: u32 = 500;
const CLIENTS: usize = 32;
/// How long all clients ask, after a while in which everything becomes warm.
const LOAD: Duration = Duration::from_secs(10);
const LOAD_BEFORE: Duration = Duration::from_secs(1);

/// One piece of work with everything in memory.
pub struct Piece {
    /// Its name in the report.
    pub name: &'static str,
    /// The processor time of one thread for it.
    pub time: Duration,
    /// How many instructions that are, where valgrind is installed.
    pub instructions: Option<f64>,
}

/// The deployed function alone.
pub struct Alone {
    /// The processor time for a token.
    pub time: Duration,
    /// How long a token takes, from the event to the answer.
    pub waiting: Duration,
}

/// Through the local gateway.
pub struct Load {
    pub tokens: usize,
    /// In which time.
    pub time: Duration,
    /// How long each took.
    pub waiting: Times,
    pub usage: Usage,
}

/// Measures and prints it all.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    let pieces = pieces()?;
    let stand = Stand::start(Setup { release: &[TOKEN], ..Setup::default() }).await?;
    let alone = alone(&stand).await?;
    load(&stand, LOAD_BEFORE).await.map_err(|error| error.to_string())?;
    let load = load(&stand, LOAD).await.map_err(|error| error.to_string())?;
    report::tokens(&pieces, &alone);
    report::token_load(&load, CLIENTS);
    Ok(())
}

fn pieces() -> Result<Vec<Piece>, Box<dyn Error>> {
    let printed = Command::new(PROGRAM).output()?;
    if !printed.status.success() {
        return Err(format!("{PROGRAM}: {}", String::from_utf8_lossy(&printed.stderr)).into());
    }
    let nanoseconds: BTreeMap<String, u64> = serde_json::from_slice(&printed.stdout)?;
    let piece = |(work, name)| {
        let time = nanoseconds.get(work).copied().ok_or("a piece of work was not measured")?;
        Ok(Piece { name, time: Duration::from_nanos(time), instructions: instructions(work)? })
    };
    WORK.into_iter().map(piece).collect()
}

/// How many instructions a piece of work takes, as callgrind counts them: of the processor that it plays, which lacks
/// some of the extensions of the real one. `None` where there is no valgrind.
fn instructions(work: &str) -> Result<Option<f64>, Box<dyn Error>> {
    let [few, many] = COUNTED;
    let (Some(less), Some(more)) = (counted(work, few)?, counted(work, many)?) else { return Ok(None) };
    Ok(Some((more - less) / f64::from(many - few)))
}

fn counted(work: &str, count: u32) -> Result<Option<f64>, Box<dyn Error>> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM, work, &count.to_string()]);
    let report = match valgrind.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        output => String::from_utf8(output?.stderr)?,
    };
    let line = report.lines().find_map(|line| line.rsplit_once("Collected :"));
    let (_, instructions) = line.ok_or_else(|| format!("valgrind counted nothing: {report}"))?;
    Ok(Some(instructions.trim().parse()?))
}

async fn alone(stand: &Stand) -> Result<Alone, Box<dyn Error>> {
    let table = MemoryTable::before(stand.var("DYNAMODB_ENDPOINT")).await?;
    let function = Subject::token(stand);
    let (mut api, process) = function.spawn(stand, &[("AWS_ENDPOINT_URL_DYNAMODB", &table.address)]).await?;
    let process = process.id().ok_or("the function has ended")?;
    for _ in 0..WARM_UP {
        function.invoke(&mut api).await?;
    }
    let (before, began) = (computed(process)?, Instant::now());
    for _ in 0..ALONE {
        function.invoke(&mut api).await?;
    }
    Ok(Alone { time: (computed(process)? - before) / ALONE, waiting: began.elapsed() / ALONE })
}

/// All clients ask as fast as they are answered.
async fn load(stand: &Stand, limit: Duration) -> TaskResult<Load> {
    let (form, mut clients) = (stand.token_form(), JoinSet::new());
    let usage = || Usage::of(stand.bundle).map_err(|error| error.to_string());
    let (before, began) = (usage()?, Instant::now());
    for _ in 0..CLIENTS {
        let (form, mut connection) = (form.clone(), Connection::open(stand.var("AUTH_URL")).await?);
        clients.spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < limit {
                let answer = connection.post("/oauth2/token", &[("content-type", FORM)], form.clone()).await?;
                if answer.status != 200 {
                    let body = String::from_utf8_lossy(&answer.body);
                    return Err(format!("a token request was answered with {}: {body}", answer.status).into());
                }
                times.push(answer.time);
            }
            TaskResult::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(client) = clients.join_next().await {
        times.extend(client??);
    }
    let (time, usage) = (began.elapsed(), usage()?.since(&before));
    Ok(Load { tokens: times.len(), time, waiting: Times::of(times), usage })
}
