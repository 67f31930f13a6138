//! Starting the parts in dependency order. [`Start::everything`] lists the steps.

use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
};

use auth::{Entities, EntityId, Scopes};
use base::{SharedClock, SharedRandom, SystemClock, SystemRandom, wait::Wait};
use geo_ip::StoreAddress;
use issuer::{
    applications::new_application::NewApplication,
    panel::{links::CreatedLink, new_link::NewPanelLink},
};
use operator::{
    applications::{ApplicationError, Credentials, OperatorsApplications},
    canary::{self, CanaryError},
    panel_links::{OperatorsPanelLinks, PanelLinkError, WantedLink},
    provision::{ProvisionError, publish_signing_key},
};
use queue::Queues;
use secret_store::{Location, SecretStore};
use serde_json::json;
use storage::{Secrets as SecretsManager, Table};
use template::Function;
use tokio::{net::TcpListener, sync::oneshot, task::JoinError};

use crate::{
    Arguments,
    aws::{ACCOUNT, Credentials as AwsCredentials, Endpoints, REGION},
    bundle::{Bundle, ENVIRONMENT, Environment, EnvironmentError},
    call_record::CallRecord,
    callers::Callers,
    data_folder::{DataFolder, DataFolderError, write_private},
    function_processes,
    gateway::Gateway,
    invoke::Invoker,
    lambda_api, log_files,
    plan::{Plan, PlanError},
    ports::{self, Port, PortError, Ports},
    processes::ProcessGroup,
    queue_pump::QueuePump,
    queues::{self, QueueError},
    readiness::{NotReady, Probe},
    running::{RunError, Running, RunningGateway},
    runtime_api::RuntimeApi,
    schedule_pump::SchedulePump,
    secrets::{DEMO_APPLICATION, PLATFORM_APPLICATION, Secrets, SecretsError, TableFound},
    service_env::{self, MANAGING_ENTITY, ServiceEnv},
    services::{self, Services},
    shutdown,
    table::{TABLE_NAME, TableError, TableServer},
    terminal::Terminal,
};

/// Why the service is not running. Errors say what to do, where possible.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Data(#[from] DataFolderError),
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    #[error("child processes cannot be started")]
    Processes(#[source] io::Error),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("a startup step panicked")]
    Panic(#[source] JoinError),
    #[error("the template declares no table")]
    NoTable,
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("a secret cannot be used")]
    SecretStore(#[from] secret_store::FileError),
    #[error("the public keys cannot be written into the table")]
    Keys(#[from] ProvisionError),
    #[error("the first applications cannot be created")]
    Applications(#[from] ApplicationError),
    #[error("the canary cannot be set up")]
    Canary(#[from] CanaryError),
    #[error("the panel link cannot be created")]
    PanelLink(#[from] PanelLinkError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("the record of the functions' calls cannot be opened")]
    CallRecord(#[source] io::Error),
    #[error(transparent)]
    NotReady(#[from] NotReady),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Runs the service until it is asked to stop.
pub async fn run(arguments: &Arguments) -> Result<(), StartError> {
    if arguments.overrides.table_alone {
        return run_table(arguments).await;
    }
    let plan = Plan::read(arguments)?;
    let host = ports::out_of_reach(&plan.settings.address_rules());
    let ports = Ports::open(arguments.port, host, plan.overrides)?;
    let data = DataFolder::open(&arguments.data)?;
    let group = ProcessGroup::start(data.logs()).map_err(StartError::Processes)?;
    let start = Start::new(&plan, &ports, &data, &group, Terminal::new(arguments.quiet))?;
    let mut shutdown = pin!(shutdown::requested(arguments.stop_with_parent));
    let outcome = tokio::select! {
        started = start.everything(ports) => match started {
            Ok(running) => running.until(&mut shutdown, &data).await.map_err(StartError::Run),
            Err(error) => Err(error),
        },
        asked = &mut shutdown => asked.map_err(|error| RunError::Signals(error).into()),
    };
    data.withdraw_service_env()?;
    group.end().await.map_err(StartError::Processes)?;
    outcome
}

/// Runs only the table until it is asked to stop.
async fn run_table(arguments: &Arguments) -> Result<(), StartError> {
    let port = Port::open(Ipv4Addr::LOCALHOST, arguments.overrides.table_port.unwrap_or_default())?;
    let url = port.url();
    let _table = TableServer::in_memory(port)?;
    println!("{url}");
    shutdown::requested(arguments.stop_with_parent).await.map_err(|error| RunError::Signals(error).into())
}

/// The values that the startup steps share.
struct Start<'a> {
    plan: &'a Plan<'a>,
    data: &'a DataFolder,
    group: &'a Arc<ProcessGroup>,
    base_url: String,
    services: SocketAddr,
    /// The addresses of the AWS stand-ins, and the operator's credentials.
    aws: Endpoints,
    /// The functions' credentials, which identify the calling function to the stand-ins.
    functions: BTreeMap<String, AwsCredentials>,
    /// In tests, the record of the functions' calls.
    record: Option<Arc<CallRecord>>,
    lambda_endpoint: String,
    geo_ip_store: StoreAddress,
    terminal: Terminal,
    clock: SharedClock,
    random: SharedRandom,
}

impl<'a> Start<'a> {
    fn new(
        plan: &'a Plan<'a>,
        ports: &Ports,
        data: &'a DataFolder,
        group: &'a Arc<ProcessGroup>,
        terminal: Terminal,
    ) -> Result<Self, StartError> {
        let random = SystemRandom;
        let credentials = AwsCredentials::fresh(&random);
        let folder = || StoreAddress::Folder(data.geo_ip());
        let geo_ip_store = plan.settings.geo_ip_store.clone().unwrap_or_else(folder);
        let functions = plan.template.functions().iter();
        let functions = functions.map(|function| (function.name.clone(), AwsCredentials::fresh(&random))).collect();
        let record = plan.overrides.record_calls.as_deref().map(CallRecord::open).transpose();
        let record = record.map_err(StartError::CallRecord)?.map(Arc::new);
        Ok(Self {
            plan,
            data,
            group,
            base_url: ports.gateway.url(),
            services: ports.services.address,
            aws: Endpoints { credentials, table: ports.table.url(), services: ports.services.url() },
            lambda_endpoint: ports.lambda.url(),
            functions,
            record,
            geo_ip_store,
            terminal,
            clock: Arc::new(SystemClock),
            random: Arc::new(random),
        })
    }

    /// The callers that the stand-ins accept.
    fn callers(&self) -> Callers {
        Callers::new(&self.aws.credentials, &self.functions, self.record.clone(), Arc::clone(&self.clock))
    }

    /// Performs the startup steps.
    async fn everything(self, ports: Ports) -> Result<Running, StartError> {
        let secrets = self.open_secrets()?;
        let demo = secrets.credentials(DEMO_APPLICATION)?;
        let platform = secrets.credentials(PLATFORM_APPLICATION)?;
        let table = self.open_table(ports.table).await?;
        let queues = self.start_services(ports.services)?;
        self.provide(&secrets, &demo, &platform).await?;
        let environments = self.environments()?;
        let invoker = self.start_functions(ports.runtime, &environments);
        let operator_alone = Callers::new(&self.aws.credentials, &BTreeMap::new(), None, Arc::clone(&self.clock));
        tokio::spawn(lambda_api::serve(ports.lambda.listener, invoker.clone(), operator_alone));
        let probe = Probe::new(ports.gateway.address, invoker.clone());
        let gateway = self.open_gateway(ports.gateway.listener, &invoker);
        probe.wait(&demo).await?;
        self.start_triggers(&queues, &invoker);
        self.write_function_variables(&environments)?;
        self.open_terminal();
        self.write_service_env(&secrets, &demo, &platform)?;
        eprintln!("{}", service_env::greeting(&self.base_url, self.data, &self.link_into_panel(&demo).await?));
        if !self.terminal.is_quiet() {
            eprintln!("Requests and attempts (QUIET=1 shows none):\n");
        }
        Ok(Running { gateway, invoker, _table: table })
    }

    /// Serves the template's queues and the secret files.
    fn start_services(&self, port: Port) -> Result<Queues, StartError> {
        let location = Location {
            folder: self.data.secrets(),
            prefix: secrets_prefix(),
            region: REGION.to_owned(),
            account: ACCOUNT.to_owned(),
        };
        let secrets = SecretStore::open(location, Arc::clone(&self.clock), Arc::clone(&self.random))?;
        let clock = Arc::clone(&self.clock);
        let random = Arc::clone(&self.random);
        let queues = Queues::new(&self.aws.services, REGION, ACCOUNT, clock, random);
        queues::create(&queues, self.plan.template.queues())?;
        let s3 = self.plan.overrides.s3.clone();
        let services = Services { queues: queues.clone(), secrets: Arc::new(secrets), s3 };
        tokio::spawn(services::serve(port.listener, services, self.callers()));
        Ok(queues)
    }

    /// Opens the secret files, and checks those that functions read later.
    fn open_secrets(&self) -> Result<Secrets, StartError> {
        if Secrets::check_table(&self.data.secrets(), &self.data.table())? == TableFound::Lost {
            let table = self.data.table();
            tracing::warn!("{} is new and empty, although the secrets of an earlier run exist", table.display());
        }
        let secrets = Secrets::open(&self.data.secrets(), self.plan.signing_algorithm)?;
        secrets.check_own(&self.data.secrets())?;
        secrets.check_geo_ip(&self.data.secrets())?;
        secrets.check_providers(&self.data.secrets(), &self.plan.settings.address_rules())?;
        Ok(secrets)
    }

    async fn open_table(&self, port: Port) -> Result<TableServer, StartError> {
        let table = self.plan.template.tables().first().ok_or(StartError::NoTable)?.clone();
        let file = self.data.table();
        let callers = self.callers();
        let opened = tokio::task::spawn_blocking(move || TableServer::start(&file, &table, port, callers));
        Ok(opened.await.map_err(StartError::Panic)??)
    }

    /// Provisions the table as an operator would for a new stack: the public keys, the canary, and the first
    /// applications.
    async fn provide(&self, secrets: &Secrets, demo: &Credentials, platform: &Credentials) -> Result<(), StartError> {
        let table = Table::new(self.aws.dynamodb(), TABLE_NAME);
        publish_signing_key(&table, secrets.value("signing-key"), self.plan.token_lifetime).await?;
        let secrets = SecretsManager::new(self.aws.secrets_manager(), secrets_prefix());
        canary::provide(&table, secrets.clone(), ENVIRONMENT, &self.base_url).await?;
        let applications = OperatorsApplications::new(&table, secrets, ENVIRONMENT);
        for (name, entity, credentials) in [("Demo", MANAGING_ENTITY, demo), ("Platform", Entities::EVERY, platform)] {
            let entities = Entities::new([entity.to_owned()]);
            let new = NewApplication::of_operator(name.to_owned(), Scopes::ALL, entities).publishing(true);
            applications.ensure(new, credentials).await?;
        }
        Ok(())
    }

    /// A panel link for the demo application, for the person who started the service.
    async fn link_into_panel(&self, demo: &Credentials) -> Result<CreatedLink, StartError> {
        let links = OperatorsPanelLinks::new(Table::new(self.aws.dynamodb(), TABLE_NAME), self.base_url.clone());
        let entity = EntityId::parse(MANAGING_ENTITY).expect("the demo entity has an identifier");
        let client_id = demo.client_id.clone();
        let properties = NewPanelLink::default();
        Ok(links.create(WantedLink { entity, client_id, properties }).await?)
    }

    /// Each function's variables by function name, even for functions that do not run here.
    fn environments(&self) -> Result<BTreeMap<String, Environment>, EnvironmentError> {
        let Plan { template, settings, overrides, .. } = self.plan;
        let mut aws = self.aws.clone();
        aws.table = overrides.functions_table.clone().unwrap_or(aws.table);
        aws.services = overrides.functions_services.clone().unwrap_or(aws.services);
        let geo_ip_store = &self.geo_ip_store.to_string();
        let bundle = Bundle { template, settings, base_url: &self.base_url, services: self.services, geo_ip_store };
        let environments = template.functions().iter().map(|function| {
            let aws = aws.of(self.functions.get(&function.name));
            Ok((function.name.clone(), bundle.environment(function, &aws)?))
        });
        environments.collect()
    }

    /// Starts the Runtime API, which the functions' processes poll. A function's first invocation starts its process.
    fn start_functions(&self, port: Port, environments: &BTreeMap<String, Environment>) -> Invoker {
        let Plan { functions, programs, overrides, .. } = self.plan;
        let idle_limit = overrides.function_idle.map_or(function_processes::IDLE_LIMIT, |Wait(limit)| limit);
        let names = functions.iter().map(|function| function.name.as_str());
        let api = RuntimeApi::start(names, port, Arc::clone(&self.random));
        let with_process = |function: &Function| {
            let environment = environments.get(&function.name).cloned().unwrap_or_default();
            let process = function_processes::process(self.group, programs, function, environment, &api, idle_limit);
            (function.clone(), process)
        };
        let processes: Vec<_> = functions.iter().map(with_process).collect();
        Invoker::new(api, Arc::clone(&self.clock), processes)
    }

    /// Writes the functions' variables, which `local/sam` reads.
    fn write_function_variables(&self, environments: &BTreeMap<String, Environment>) -> Result<(), DataFolderError> {
        write_private(&self.data.function_variables(), json!(environments).to_string().as_bytes())
    }

    fn open_gateway(&self, listener: TcpListener, invoker: &Invoker) -> RunningGateway {
        let (close, closed) = oneshot::channel::<()>();
        let base_url = self.base_url.clone();
        let terminal = self.terminal.clone();
        let clock = Arc::clone(&self.clock);
        let random = Arc::clone(&self.random);
        let gateway = Gateway::new(&self.plan.template, invoker.clone(), base_url, terminal, clock, random);
        RunningGateway { end: tokio::spawn(gateway.serve(listener, async { drop(closed.await) })), close }
    }

    /// From now on, shows requests, attempts and faults.
    fn open_terminal(&self) {
        if !self.terminal.is_quiet() {
            self.terminal.open();
            tokio::spawn(log_files::follow(self.data.logs(), self.terminal.clone()));
        }
    }

    /// Starts the pumps, which invoke functions for queues and schedules.
    fn start_triggers(&self, queues: &Queues, invoker: &Invoker) {
        for function in &self.plan.functions {
            for trigger in &function.queues {
                QueuePump::start(&function.name, trigger, queues.clone(), invoker.clone());
            }
            if let Some(trigger) = &function.schedule {
                let pump = SchedulePump {
                    function: function.name.clone(),
                    input: trigger.input.clone(),
                    pace: self.plan.settings.pace(trigger),
                    invoker: invoker.clone(),
                    clock: Arc::clone(&self.clock),
                    random: Arc::clone(&self.random),
                };
                tokio::spawn(pump.run());
            }
        }
    }

    /// Writes `service.env`; from now on, the service responds.
    fn write_service_env(
        &self,
        secrets: &Secrets,
        demo: &Credentials,
        platform: &Credentials,
    ) -> Result<(), DataFolderError> {
        let service_env = ServiceEnv {
            base_url: &self.base_url,
            demo,
            platform,
            task_key: secrets.value("task-key")["key"].as_str().unwrap_or_default(),
            lambda_endpoint: &self.lambda_endpoint,
            aws: &self.aws,
            geo_ip_store: &self.geo_ip_store.to_string(),
        };
        write_private(&self.data.service_env(), service_env.content().as_bytes())
    }
}

/// The prefix that all secrets' names share.
fn secrets_prefix() -> String {
    format!("waypost/{ENVIRONMENT}/")
}
