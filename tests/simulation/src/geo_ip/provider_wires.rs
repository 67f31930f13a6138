//! The network that leads to the database providers.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use base::pause;
use futures::{FutureExt, future::BoxFuture};
use outbound::{Link, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::{EDITIONS, ProviderMood, between_turns, in_turn};
use crate::{faults::Fault, sandbox::Sandbox, world::World};

/// One sandbox's network.
#[derive(Clone)]
pub struct ProviderWires {
    /// The state that all sandboxes share.
    pub world: Arc<World>,
    /// The sandbox that connects.
    pub sandbox: Arc<Sandbox>,
}

impl fmt::Debug for ProviderWires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderWires").field("sandbox", &self.sandbox.id).finish_non_exhaustive()
    }
}

impl Network for ProviderWires {
    fn open(&self, peer: SocketAddr) -> BoxFuture<'_, io::Result<Link>> {
        async move {
            self.sandbox.running().await;
            in_turn(&self.world, &self.sandbox).await;
            let is_refused = {
                let point = "connect to a provider";
                let function = self.sandbox.function;
                let mut state = self.world.state();
                let mut rng = self.world.draws.about(&("provider", self.world.clock.millis(), self.sandbox.id));
                state.coverage.reached(function, point);
                let is_refused = state.chances.occurs(Fault::NotConnected, &mut rng);
                if is_refused {
                    state.coverage.injected(function, point, Fault::NotConnected);
                }
                is_refused
            };
            if is_refused {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (ours, theirs) = duplex(64 * 1024);
            let world = Arc::clone(&self.world);
            let sandbox = self.sandbox.id;
            tokio::spawn(async move { serve(&world, sandbox, theirs).await });
            Ok(Link { stream: Box::new(ours), peer, is_quiet: Box::new(|| true) })
        }
        .boxed()
    }
}

/// Handles one request.
async fn serve(world: &World, sandbox: u64, mut stream: DuplexStream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1)?.to_owned();
    let edition = EDITIONS.iter().position(|edition| path.contains(edition))?;
    let mood = world.state().geo_ip.providers[edition].mood;
    world.note(|| format!("the provider of {} gets {path} from {sandbox} and reacts: {mood:?}", EDITIONS[edition]));
    match mood {
        ProviderMood::Refuses => return None,
        ProviderMood::Serves(wait) => pause(between_turns(Duration::from_millis(wait))).await,
        _ => {}
    }
    let (status, body, sent) = world.state().geo_ip.providers[edition].answer(&path);
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Simulated\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(&body[..sent.unwrap_or(length)]).await.ok()?;
    if mood == ProviderMood::Stalls && sent.is_some() {
        // The client has given up.
        let _ = stream.read_u8().await;
    }
    Some(())
}
