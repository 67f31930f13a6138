//! An emulated network between a function and a server. Bytes to the server are delayed by a round trip and bytes back
//! are not, so a handshake takes whole round trips, and so does a call. Threads sleep for the delay, since an async
//! runtime's timers count in whole milliseconds.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// A network path to one server.
pub struct Network {
    /// The address that the function calls.
    pub address: SocketAddr,
    way: Arc<Way>,
}

#[derive(Default)]
struct Way {
    /// The round trip, in nanoseconds.
    round_trip: AtomicU64,
    connections: AtomicU64,
    chunks: AtomicU64,
    /// The sum of all unintended delays, in nanoseconds.
    late: AtomicU64,
}

impl Network {
    /// A path to this server, at first without a delay.
    pub fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let way = Arc::<Way>::default();
        let shared = Arc::clone(&way);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                shared.connections.fetch_add(1, Relaxed);
                // If the server is gone, the client sees a closed connection.
                drop(connect(client, server, &shared));
            }
        });
        Ok(Self { address, way })
    }

    /// Sets the duration of a round trip.
    pub fn set_round_trip(&self, time: Duration) {
        self.way.round_trip.store(nanoseconds(time), Relaxed);
    }

    /// The number of connections opened so far.
    pub fn connections(&self) -> u64 {
        self.way.connections.load(Relaxed)
    }

    /// The mean delay in excess of a round trip.
    pub fn lateness(&self) -> Duration {
        Duration::from_nanos(self.way.late.load(Relaxed) / self.way.chunks.load(Relaxed).max(1))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn connect(client: TcpStream, server: SocketAddr, way: &Arc<Way>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (chunks, arriving) = mpsc::channel();
    let mut from_client = client.try_clone()?;
    let mut to_server = server.try_clone()?;
    let read = Arc::clone(way);
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        // The TCP handshake before the first bytes also takes a round trip.
        let mut round_trips = 2;
        while let Ok(length @ 1..) = from_client.read(&mut buffer) {
            let wait = Duration::from_nanos(read.round_trip.load(Relaxed)) * std::mem::replace(&mut round_trips, 1);
            if chunks.send((Instant::now() + wait, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    let written = Arc::clone(way);
    thread::spawn(move || {
        for (due, chunk) in arriving {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            written.late.fetch_add(nanoseconds(due.elapsed()), Relaxed);
            written.chunks.fetch_add(1, Relaxed);
            if to_server.write_all(&chunk).is_err() {
                break;
            }
        }
        drop(to_server.shutdown(Shutdown::Write));
    });
    let mut from_server = server;
    let mut to_client = client;
    thread::spawn(move || {
        drop(io::copy(&mut from_server, &mut to_client));
        drop(to_client.shutdown(Shutdown::Write));
    });
    Ok(())
}
