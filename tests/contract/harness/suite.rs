//! What all tests share: the bundle, its client, and the contract in machine-readable form.

use std::{
    net::Ipv4Addr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    Admin, Api, Bundle, Contract, Entity, Forge, Secrets, Settings, Simulation, Table, admin, aws_caller, free_port,
    stack::{self, Stack, needs_bundle},
};
use fakes::{Interposer, provider::Providers};

/// What runs the service that tests share.
pub enum Service {
    /// A bundle of this machine, which the suite starts and stops.
    Bundle(Box<Bundle>),
    /// A stack that was deployed before.
    Stack(Stack),
}

/// The service that tests share, and the means to start others.
pub struct Suite {
    pub service: Service,
    pub api: Api,
    pub contract: Arc<Contract>,
    /// The payment providers of every bundle.
    simulation: Simulation,
    entities: AtomicU32,
    other_bundles: Semaphore,
}

/// How many bundles run beside the first at once.
const OTHER_BUNDLES: u32 = 2;

/// A bundle whose functions reach the table and the queues through proxies, which know every call.
pub struct Interposed {
    pub bundle: Bundle,
    pub api: Api,
    /// Before the table.
    pub table: Interposer,
    /// Before queues and secrets.
    pub services: Interposer,
}

/// An application that asks for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Application {
    /// The demo application, for one managing entity.
    Demo,
    /// The platform's, for all of them.
    Platform,
}

impl Application {
    /// The names in service.env that its credentials have.
    pub fn variables(self) -> (&'static str, &'static str) {
        match self {
            Self::Demo => ("CLIENT_ID", "CLIENT_SECRET"),
            Self::Platform => ("PLATFORM_CLIENT_ID", "PLATFORM_CLIENT_SECRET"),
        }
    }
}

impl Suite {
    /// Starts the payment providers, and then the bundle, which knows their addresses; or takes the stack that is deployed.
    pub async fn start() -> Result<Self, String> {
        let contract = Arc::new(Contract::read());
        let simulation = Simulation::start().await?;
        #[expect(clippy::disallowed_methods, reason = "a choice of who runs the tests, as the arguments are")]
        let (service, api) = match std::env::var_os(stack::VARIABLE) {
            Some(file) => {
                let stack = Stack::of(file.as_ref(), &simulation.secrets).await?;
                let api = Api::with(Arc::clone(&stack.env), &contract);
                (Service::Stack(stack), api)
            }
            None => {
                let bundle = Bundle::start(Settings::default(), &simulation.secrets).await?;
                let api = Api::of(&bundle, &contract);
                (Service::Bundle(Box::new(bundle)), api)
            }
        };
        Ok(Self {
            service,
            api,
            contract,
            simulation,
            entities: AtomicU32::new(1),
            other_bundles: Semaphore::new(OTHER_BUNDLES as usize),
        })
    }

    /// The bundle, for a test of its processes, files or settings. A deployed stack has none, and the test ends.
    pub fn bundle(&self) -> &Bundle {
        match &self.service {
            Service::Bundle(bundle) => bundle,
            Service::Stack(_) => needs_bundle("processes and files of a bundle"),
        }
    }

    /// A place for a bundle beside the first. Beside a deployed stack there is none, and the test ends.
    fn places(&self) -> &Semaphore {
        match self.service {
            Service::Bundle(_) => &self.other_bundles,
            Service::Stack(_) => needs_bundle("a bundle of its own"),
        }
    }

    /// Runs the operator's program for the service.
    pub async fn admin(&self, arguments: &[&str]) -> Admin {
        match &self.service {
            Service::Bundle(bundle) => admin(bundle, arguments).await,
            Service::Stack(stack) => {
                let (options, variables) = stack.for_admin();
                Admin::run(options.iter().chain(arguments), &variables).await
            }
        }
    }

    /// A managing entity that no other test uses.
    pub async fn entity(&self) -> Entity {
        let number = self.entities.fetch_add(1, Ordering::Relaxed);
        Entity::new(&self.api, format!("entity-{number}")).await
    }

    /// A second bundle, started while there are no two others: each takes a dozen processes and more, and the
    /// machine is small.
    pub async fn other_bundle(&self, settings: Settings) -> (Bundle, Api, SemaphorePermit<'_>) {
        self.other_bundle_with(settings, &[]).await
    }

    /// The same with more secrets than every bundle has.
    pub async fn other_bundle_with(
        &self,
        settings: Settings,
        secrets: &[(&str, Value)],
    ) -> (Bundle, Api, SemaphorePermit<'_>) {
        let mut all = self.simulation.secrets.clone();
        all.extend(secrets.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.start_other(settings, &all, Vec::new()).await
    }

    /// The same with a proxy between the functions and the table, and one between them and the queues.
    pub async fn other_bundle_interposed(&self, settings: Settings) -> (Interposed, SemaphorePermit<'_>) {
        let table_port = free_port();
        let services_port = free_port();
        let table = Interposer::start((Ipv4Addr::LOCALHOST, table_port).into()).await;
        let services = Interposer::start((Ipv4Addr::LOCALHOST, services_port).into()).await;
        let arguments = [
            ("--table-port", table_port.to_string()),
            ("--services-port", services_port.to_string()),
            ("--functions-table", table.url()),
            ("--functions-services", services.url()),
        ];
        let arguments = arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        let (bundle, api, permit) = self.start_other(settings, &self.simulation.secrets, arguments).await;
        for proxy in [&table, &services] {
            proxy.sign_as(aws_caller(&api.env));
        }
        (Interposed { bundle, api, table, services }, permit)
    }

    /// A second bundle with these functions alone, whose programs are in this folder.
    pub async fn other_bundle_of_programs(
        &self,
        folder: &Path,
        functions: &[&str],
    ) -> (Bundle, Api, SemaphorePermit<'_>) {
        let arguments = [("--binaries", folder.display().to_string()), ("--only", functions.join(","))];
        let arguments = arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        self.start_other(Settings::default(), &self.simulation.secrets, arguments).await
    }

    async fn start_other(
        &self,
        settings: Settings,
        secrets: &Secrets,
        arguments: Vec<String>,
    ) -> (Bundle, Api, SemaphorePermit<'_>) {
        let permit = self.places().acquire().await.expect("the semaphore is never closed");
        let bundle = Bundle::start_with(settings, secrets, arguments).await;
        let bundle = bundle.expect("another bundle starts beside the first");
        let api = Api::of(&bundle, &self.contract);
        (bundle, api, permit)
    }

    /// Takes the place of a bundle, for tests that start one themselves.
    pub async fn no_other_bundle(&self) -> SemaphorePermit<'_> {
        self.places().acquire().await.expect("the semaphore is never closed")
    }

    pub fn providers(&self) -> &Providers {
        &self.simulation.providers
    }

    pub fn table(&self) -> Table {
        Table::of(&self.api.env)
    }

    /// Makes tokens of its own with the service's key.
    pub fn forge(&self) -> Forge {
        match &self.service {
            Service::Bundle(bundle) => Forge::of(bundle),
            Service::Stack(stack) => Forge::with(&stack.signing_key, &stack.env),
        }
    }
}
