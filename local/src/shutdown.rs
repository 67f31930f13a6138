//! The request to stop: SIGINT, SIGTERM or SIGHUP or, with `--stop-with-parent`, the parent process's end.

use std::{io, os::unix::process::parent_id, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time,
};

/// How often to check whether the parent is running.
const LOOK: Duration = Duration::from_millis(500);

/// Returns on the first request to stop; further signals have no effect.
pub async fn requested(stop_with_parent: bool) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
        () = parent_gone(), if stop_with_parent => tracing::info!("the parent process has exited"),
    }
    Ok(())
}

async fn parent_gone() {
    let parent = parent_id();
    while parent_id() == parent {
        time::sleep(LOOK).await;
    }
}
