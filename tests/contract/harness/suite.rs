//! The state that all tests share: the bundle, its client, and the contract in machine-readable form.

use std::{
    cell::Cell,
    net::Ipv4Addr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::sleep,
};

use super::{
    Admin, Api, Bundle, Contract, Entity, Forge, Secrets, Settings, Simulation, Table, admin, aws_caller, free_port,
    stack::{self, Stack, needs_bundle},
    stalls::Stalls,
};
use fakes::{Interposer, provider::Providers};

/// The service that the tests share.
pub enum Service {
    /// A local bundle, which the suite starts and stops.
    Bundle(Box<Bundle>),
    /// A deployed stack.
    Stack(Stack),
}

/// The shared service, and everything needed to start other bundles.
pub struct Suite {
    pub service: Service,
    pub api: Api,
    pub contract: Arc<Contract>,
    pub(super) stalls: Stalls,
    /// The payment providers that every bundle uses.
    simulation: Simulation,
    entities: AtomicU32,
    turns: Semaphore,
    other_bundles: Semaphore,
}

/// The number of tests that run concurrently: far more than there are processors, since tests mostly wait, but no more
/// than the shared bundle can serve in time on a busy machine.
const TURNS: usize = 24;
/// The maximum response time at which another test may start.
const IN_TIME: Duration = Duration::from_secs(2);
/// How often a test is delayed by a second because the service is slow. Other processes may also slow the service down.
const MOST_DELAYS: usize = 5;
/// The number of bundles that may run alongside the first.
const OTHER_BUNDLES: usize = 8;

/// A bundle whose functions reach the table and the queues through proxies that see every call.
pub struct Interposed {
    pub bundle: Bundle,
    pub api: Api,
    /// The proxy in front of the table.
    pub table: Interposer,
    /// The proxy in front of the queues and secrets.
    pub services: Interposer,
}

/// An application that can request a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Application {
    /// The demo application, which has one managing entity.
    Demo,
    /// The platform's application, which acts for all managing entities.
    Platform,
}

impl Application {
    /// The names of the application's credentials in service.env.
    pub fn variables(self) -> (&'static str, &'static str) {
        match self {
            Self::Demo => ("CLIENT_ID", "CLIENT_SECRET"),
            Self::Platform => ("PLATFORM_CLIENT_ID", "PLATFORM_CLIENT_SECRET"),
        }
    }
}

thread_local! {
    /// How long this thread's test has waited for permits for other bundles.
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Returns how long this thread's test has waited for permits for other bundles since the last call.
pub(super) fn take_waited() -> Duration {
    WAITED.take()
}

impl Suite {
    /// Starts the payment providers, then the bundle, which is given their URLs; or uses the deployed stack.
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
            stalls: Stalls::watch(&api),
            api,
            contract,
            simulation,
            entities: AtomicU32::new(1),
            turns: Semaphore::new(TURNS),
            other_bundles: Semaphore::new(OTHER_BUNDLES),
        })
    }

    /// The bundle, for tests of its processes, files or settings. With a deployed stack, such a test is ignored.
    pub fn bundle(&self) -> &Bundle {
        match &self.service {
            Service::Bundle(bundle) => bundle,
            Service::Stack(_) => needs_bundle("processes and files of a bundle"),
        }
    }

    /// Waits until the test may run: it needs a turn, and the service must respond in time. On a machine with other
    /// users, fewer tests therefore run concurrently.
    pub async fn turn(&self) -> SemaphorePermit<'_> {
        let turn = self.turns.acquire().await.expect("the semaphore is never closed");
        for _ in 0..MOST_DELAYS {
            let began = Instant::now();
            let token = self.api.token(Application::Demo, "").await;
            let list = format!("/api/managing-entity/{}/webhook/list", self.api.env["MANAGING_ENTITY"]);
            self.api.get(list).bearer(&token).answered().await;
            if began.elapsed() < IN_TIME {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        turn
    }

    /// Waits for another bundle's permit, for tests that start one themselves. In the meantime, another test gets this
    /// test's turn. With a deployed stack, the test is ignored.
    pub async fn bundle_permit(&self) -> SemaphorePermit<'_> {
        if let Service::Stack(_) = self.service {
            needs_bundle("a separate bundle");
        }
        let began = Instant::now();
        self.turns.add_permits(1);
        let permit = self.other_bundles.acquire().await.expect("the semaphore is never closed");
        self.turn().await.forget();
        WAITED.set(WAITED.get() + began.elapsed());
        permit
    }

    /// Runs the operator's program against the service.
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

    /// Waits for a permit, then starts another bundle: each has more than a dozen processes, so only a few may run
    /// concurrently.
    pub async fn other_bundle(&self, settings: Settings) -> (Bundle, Api, SemaphorePermit<'_>) {
        self.other_bundle_with(settings, &[]).await
    }

    /// Starts another bundle with additional secrets.
    pub async fn other_bundle_with(
        &self,
        settings: Settings,
        secrets: &[(&str, Value)],
    ) -> (Bundle, Api, SemaphorePermit<'_>) {
        let mut all = self.simulation.secrets.clone();
        all.extend(secrets.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        self.start_other(settings, &all, Vec::new()).await
    }

    /// Starts another bundle with one proxy between the functions and the table, and another between the functions and
    /// the queues.
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

    /// Starts another bundle whose only functions are the programs in this folder.
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
        let permit = self.bundle_permit().await;
        let bundle = Bundle::start_with(settings, secrets, arguments).await;
        let bundle = bundle.expect("another bundle starts beside the first");
        let api = Api::of(&bundle, &self.contract);
        (bundle, api, permit)
    }

    pub fn providers(&self) -> &Providers {
        &self.simulation.providers
    }

    pub fn table(&self) -> Table {
        Table::of(&self.api.env)
    }

    /// A forger that signs tokens with the service's key.
    pub fn forge(&self) -> Forge {
        match &self.service {
            Service::Bundle(bundle) => Forge::of(bundle),
            Service::Stack(stack) => Forge::with(&stack.signing_key, &stack.env),
        }
    }
}
