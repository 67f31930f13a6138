//! The use cases for payment providers in one sandbox.

use std::sync::{Arc, OnceLock};

use outbound::Outbound;
use payments::{
    Connections, Grants, PendingAuthorizations, Providers, Revocations, callback::Callback, connect::Connecting,
    disconnect::Disconnecting, panel::PanelSettings, refresh::Refresher, start::Start,
};
use storage::secrets::Secrets;
use tokio::sync::OnceCell;

use crate::{
    bundle::{Bundle, rules},
    oauth::BASE_URL,
};

/// The use cases that a sandbox keeps between invocations.
#[derive(Default)]
pub struct UseCases {
    connecting: OnceLock<Connecting>,
    callback: OnceCell<Callback>,
    disconnecting: OnceLock<Disconnecting>,
    refresher: OnceLock<Refresher>,
}

impl Bundle {
    fn secrets(&self) -> Secrets {
        Secrets::connect(&self.aws, crate::aws::SECRETS_PREFIX)
    }

    fn described(&self) -> Providers {
        Providers::new(self.secrets(), rules(), self.clock.clone())
    }

    fn pending(&self) -> PendingAuthorizations {
        PendingAuthorizations::new(self.table.clone())
    }

    fn connections(&self) -> Connections {
        Connections::new(self.table.clone())
    }

    fn to_providers(&self) -> Outbound {
        self.outbound.clone()
    }

    /// The use case that requests links.
    pub fn connecting(&self) -> &Connecting {
        self.providers.connecting.get_or_init(|| Connecting {
            pending: self.pending(),
            connections: self.connections(),
            providers: self.described(),
            answers: self.sealed_answers(),
            rings: self.rings.clone(),
            base_url: BASE_URL.to_owned(),
            clock: self.clock.clone(),
            random: self.random.clone(),
        })
    }

    /// The use case that shows the start page.
    pub fn start_page(&self) -> Start {
        Start { pending: self.pending(), clock: self.clock.clone(), random: self.random.clone() }
    }

    /// The use case that handles callbacks.
    pub async fn callback(self: &Arc<Self>) -> &Callback {
        let make = async || {
            let panel = PanelSettings { address: format!("{BASE_URL}/panel"), is_own: true };
            let time = (self.clock.clone(), self.random.clone());
            let addresses = (BASE_URL.to_owned(), panel);
            let environment = "simulation".to_owned();
            let outbound = self.to_providers();
            Callback::new(self.table.clone(), self.secrets(), outbound, addresses, environment, time).await
        };
        self.providers.callback.get_or_init(make).await
    }

    /// The use case that disconnects.
    pub fn disconnecting(&self) -> &Disconnecting {
        let (clock, random) = (self.clock.clone(), self.random.clone());
        self.providers.disconnecting.get_or_init(|| Disconnecting {
            connections: self.connections(),
            providers: self.described(),
            revocations: Revocations::new(self.to_providers(), BASE_URL, clock.clone(), random.clone()),
            rings: self.rings.clone(),
            clock,
            random,
        })
    }

    /// The use case that refreshes tokens.
    pub fn refresher(&self) -> &Refresher {
        let (clock, random) = (self.clock.clone(), self.random.clone());
        self.providers.refresher.get_or_init(|| Refresher {
            connections: self.connections(),
            providers: self.described(),
            grants: Grants::new(self.to_providers(), BASE_URL, clock.clone(), random.clone()),
            rings: self.rings.clone(),
            environment: "simulation".to_owned(),
            clock,
            random,
        })
    }
}
