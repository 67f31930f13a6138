//! A name server with prepared answers, which may differ from one query to the next. It implements the part of DNS that
//! the system's resolver needs: a single question, answered with addresses or a failure.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{net::UdpSocket, task::JoinHandle, time::sleep};

use crate::locked;

const A: u16 = 1;
const AAAA: u16 = 28;

/// The answer to queries for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameAnswer {
    /// Answers with these addresses, possibly none.
    Addresses(Vec<IpAddr>),
    /// The name does not exist.
    Unknown,
    /// The server failed.
    Failure,
    /// The server does not answer.
    Silence,
    /// Answers with these addresses after a delay.
    Late(Duration, Vec<IpAddr>),
}

/// A listening name server, which stops when it is dropped.
pub struct NameServer {
    state: Arc<Mutex<HashMap<String, Script>>>,
    answering: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Script {
    answers: Vec<NameAnswer>,
    /// The number of queries for each type of address: a lookup sends one for each.
    asked: HashMap<u16, usize>,
}

impl NameServer {
    /// A name server at this address, at first without names.
    pub async fn start(address: SocketAddr) -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::bind(address).await?);
        let state: Arc<Mutex<HashMap<String, Script>>> = Arc::default();
        let scripts = Arc::clone(&state);
        let answering = tokio::spawn(async move {
            let mut question = [0; 1_024];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                // A resolver that has given up waiting repeats the query.
                match answer(&question[..length], &scripts) {
                    Some((Duration::ZERO, answer)) => drop(socket.send_to(&answer, from).await),
                    Some((wait, answer)) => {
                        let socket = Arc::clone(&socket);
                        tokio::spawn(async move {
                            sleep(wait).await;
                            drop(socket.send_to(&answer, from).await);
                        });
                    }
                    None => {}
                }
            }
        });
        Ok(Self { state, answering })
    }

    /// Sets the answers for a name, one per lookup; the last answer is repeated.
    pub fn on(&self, name: &str, answers: impl Into<Vec<NameAnswer>>) {
        locked(&self.state).insert(name.to_owned(), Script { answers: answers.into(), asked: HashMap::new() });
    }

    /// The number of lookups of a name.
    pub fn lookups(&self, name: &str) -> usize {
        locked(&self.state).get(name).and_then(|script| script.asked.values().max().copied()).unwrap_or_default()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// The answer to a query, if any, and its delay (RFC 1035 §4.1).
fn answer(question: &[u8], scripts: &Mutex<HashMap<String, Script>>) -> Option<(Duration, Vec<u8>)> {
    let (name, end) = name(question)?;
    let kind = u16::from_be_bytes([*question.get(end)?, *question.get(end + 1)?]);
    let said = {
        let mut scripts = locked(scripts);
        match scripts.get_mut(&name) {
            Some(script) => {
                let asked = script.asked.entry(kind).or_default();
                let place = (*asked).min(script.answers.len().saturating_sub(1));
                *asked += 1;
                script.answers.get(place).cloned().unwrap_or(NameAnswer::Unknown)
            }
            None => NameAnswer::Unknown,
        }
    };
    let (wait, code, addresses) = match said {
        NameAnswer::Addresses(addresses) => (Duration::ZERO, 0, addresses),
        NameAnswer::Late(wait, addresses) => (wait, 0, addresses),
        NameAnswer::Failure => (Duration::ZERO, 2, vec![]),
        NameAnswer::Unknown => (Duration::ZERO, 3, vec![]),
        NameAnswer::Silence => return None,
    };
    let records: Vec<Vec<u8>> = addresses.iter().filter_map(|address| record(*address, kind)).collect();
    let count = u16::try_from(records.len()).ok()?;
    let mut answer = question[..2].to_vec();
    // The flags of a response with recursion desired and available, and its code; then the numbers of questions and
    // records, with no other sections.
    answer.extend([0x81, 0x80 | code, 0, 1]);
    answer.extend(count.to_be_bytes());
    answer.extend([0; 4]);
    answer.extend(&question[12..end + 4]);
    answer.extend(records.concat());
    Some((wait, answer))
}

/// The name in the question, in lower case, and the offset that follows it.
fn name(question: &[u8]) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    let mut place = 12;
    loop {
        let length = usize::from(*question.get(place)?);
        place += 1;
        if length == 0 {
            return Some((labels.join("."), place));
        }
        labels.push(String::from_utf8_lossy(question.get(place..place + length)?).to_lowercase());
        place += length;
    }
}

/// An address record of the requested type with a TTL of zero.
fn record(address: IpAddr, kind: u16) -> Option<Vec<u8>> {
    let bytes = match address {
        IpAddr::V4(address) if kind == A => address.octets().to_vec(),
        IpAddr::V6(address) if kind == AAAA => address.octets().to_vec(),
        _ => return None,
    };
    let mut record = vec![0xc0, 12]; // points to the name in the question
    record.extend(kind.to_be_bytes());
    record.extend([0, 1, 0, 0, 0, 0, 0, u8::try_from(bytes.len()).ok()?]);
    record.extend(bytes);
    Some(record)
}
