//! The running service, and its orderly shutdown.

use std::{future::Future, io, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle, time};

use crate::{
    data_folder::{DataFolder, DataFolderError},
    invoke::Invoker,
    table::TableServer,
};

/// How long running invocations have to finish.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// The parts that must live as long as the service.
pub struct Running {
    pub gateway: RunningGateway,
    pub invoker: Invoker,
    pub _table: TableServer,
}

/// The gateway, running in its own task.
pub struct RunningGateway {
    pub end: JoinHandle<io::Result<()>>,
    /// Dropping this closes the gateway.
    pub close: oneshot::Sender<()>,
}

/// Why the service ended unexpectedly.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the gateway ended")]
    Gateway(#[source] io::Error),
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Data(#[from] DataFolderError),
}

impl Running {
    /// Waits until the service is asked to stop, then lets requests and invocations in progress finish.
    pub async fn until(
        self,
        shutdown: &mut (impl Future<Output = io::Result<()>> + Unpin),
        data: &DataFolder,
    ) -> Result<(), RunError> {
        let RunningGateway { end: mut gateway, close } = self.gateway;
        tokio::select! {
            asked = shutdown => asked.map_err(RunError::Signals)?,
            ended = &mut gateway => {
                let fault = ended.map_err(io::Error::other).and_then(|ended| ended).err();
                return Err(RunError::Gateway(fault.unwrap_or_else(|| io::ErrorKind::ConnectionAborted.into())));
            }
        }
        tracing::info!("ending");
        data.withdraw_service_env()?;
        drop(close);
        let drained = async { tokio::join!(gateway, self.invoker.drain()) };
        if time::timeout(SHUTDOWN_GRACE, drained).await.is_err() {
            tracing::warn!("some requests did not finish within {} s", SHUTDOWN_GRACE.as_secs());
        }
        Ok(())
    }
}
