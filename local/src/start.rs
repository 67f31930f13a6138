//! Puts the parts together, in the order in which they need each other and otherwise at once, and takes them down again.

use std::{
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use auth::{entity::Entities, scope::Scopes};
use base::{
    clock::{Clock, SharedClock, SystemClock},
    random::{SharedRandom, SystemRandom},
};
use deployment::Template;
use geo_ip::StoreAddress;
use issuer::{
    applications::new_application::NewApplication,
    settings::{SigningSettings, TokenSettings},
};
use operator::{Credentials, ProvisionError, publish_signing_key, register_application, webhook_index};
use outbound::EndpointSettings;
use payments::panel::PanelSettings;
use storage::table::Table;
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinError, JoinHandle},
    time,
};
use webhooks::{deliveries::schedule::ScheduleSettings, subscriptions::breaker::BreakerSettings};

use crate::{
    Arguments,
    aws::{Credentials as AwsCredentials, Endpoints},
    bundle::{Bundle, ENVIRONMENT, EnvironmentError},
    callers::Callers,
    data::{DataError, DataFolder, write_private},
    function_rights::{FunctionCallers, FunctionRightsError},
    gateway::Gateway,
    invoke::Invoker,
    lambda_api,
    placement::Placement,
    ports::{self, PortError},
    preflight::{self, Missing, Programs},
    processes::ProcessGroup,
    queue_pump::QueuePump,
    readiness::{NotReady, Probe},
    runtime_api::RuntimeApi,
    schedule_pump::SchedulePump,
    secrets::{DEMO_APPLICATION, PLATFORM_APPLICATION, Secrets, SecretsError},
    service_env::{self, MANAGING_ENTITY, ServiceEnv},
    services::{self, Services, ServicesError, Socket, queue_url, relay},
    settings::{Settings, SettingsError},
    shutdown,
    table::{TABLE_NAME, TableError, TableServer},
    workers,
};

/// How long running invocations may take to end.
const LAST_ORDERS: Duration = Duration::from_secs(5);

/// How tokens are issued, and how the keys are rotated that sign them.
type Issuing = (TokenSettings, SigningSettings);

/// Why the service does not run. Each says what to do, where there is something to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    FunctionSettings(#[from] base::environment::SettingsError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    #[error("child processes cannot be started")]
    Processes(#[source] io::Error),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("a part of the start panicked")]
    Panic(#[source] JoinError),
    #[error("the template declares no table")]
    NoTable,
    #[error(transparent)]
    Services(#[from] ServicesError),
    #[error("the table cannot be provided with keys and applications")]
    Provision(#[from] ProvisionError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    FunctionRights(#[from] FunctionRightsError),
    #[error(transparent)]
    NotReady(#[from] NotReady),
    #[error("the functions' server cannot be started")]
    RuntimeApi(#[source] io::Error),
    #[error("the gateway ended")]
    Gateway(#[source] io::Error),
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
}

/// Runs the service until it is asked to end.
pub async fn run(arguments: &Arguments) -> Result<(), StartError> {
    let placement = &arguments.placement;
    let template = preflight::template(&arguments.project)?;
    let programs = preflight::programs(&arguments.project, placement.binaries.as_deref(), template.functions())?;
    #[expect(clippy::disallowed_methods, reason = "the settings of a local run are its environment")]
    let settings = Settings::read(&template, |name| std::env::var(name).ok())?;
    // As the functions will read them: better said here, by name, than by a function that does not start.
    let (issuing, ..) = base::environment::read::<(Issuing, EndpointSettings, ScheduleSettings, BreakerSettings)>()?;
    if settings.parameters.get("AdminPanelUrl").is_some_and(|address| !address.is_empty()) {
        base::environment::read::<PanelSettings>()?;
    }
    let listener = ports::listen(Ipv4Addr::LOCALHOST, arguments.port)?;
    let data = DataFolder::open(&arguments.data)?;

    let group = ProcessGroup::start(data.logs()).map_err(StartError::Processes)?;
    let mut shutdown = pin!(shutdown::requested(arguments.stop_with_parent));
    let outcome = tokio::select! {
        started = start(listener, &template, &programs, (&settings, issuing), placement, &data, &group) => match started {
            Ok(running) => running.until(&mut shutdown, &data).await,
            Err(error) => Err(error),
        },
        asked = &mut shutdown => asked.map_err(StartError::Signals),
    };
    data.withdraw_service_env()?;
    group.end().await.map_err(StartError::Processes)?;
    outcome
}

/// Everything that answers, up and provided with what it needs.
struct Running {
    gateway: JoinHandle<io::Result<()>>,
    close_gateway: oneshot::Sender<()>,
    invoker: Invoker,
    _table: TableServer,
    _socket: Socket,
}

impl Running {
    /// Waits for the request to end, and lets what is under way end first.
    async fn until(
        mut self,
        shutdown: &mut (impl Future<Output = io::Result<()>> + Unpin),
        data: &DataFolder,
    ) -> Result<(), StartError> {
        tokio::select! {
            asked = shutdown => asked.map_err(StartError::Signals)?,
            ended = &mut self.gateway => {
                return Err(StartError::Gateway(ended.map_err(io::Error::other).and_then(|ended| ended).err()
                    .unwrap_or_else(|| io::ErrorKind::ConnectionAborted.into())));
            }
        }
        tracing::info!("ending");
        data.withdraw_service_env()?;
        drop(self.close_gateway);
        let last_orders = async { tokio::join!(self.gateway, self.invoker.drain()) };
        if time::timeout(LAST_ORDERS, last_orders).await.is_err() {
            tracing::warn!("some requests did not end within {LAST_ORDERS:?}");
        }
        Ok(())
    }
}

async fn start(
    listener: TcpListener,
    template: &Template,
    programs: &Programs,
    (settings, (tokens, signing)): (&Settings, Issuing),
    placement: &Placement,
    data: &DataFolder,
    group: &Arc<ProcessGroup>,
) -> Result<Running, StartError> {
    let gateway_address = listener.local_addr().map_err(StartError::Gateway)?;
    let base_url = format!("http://{gateway_address}");
    let (clock, random): (SharedClock, SharedRandom) = (Arc::new(SystemClock), Arc::new(SystemRandom));
    let credentials = AwsCredentials::fresh(random.as_ref());
    let host = ports::out_of_reach(&settings.address_rules());
    // What a test places, it finds on 127.0.0.1.
    let placed = |port: Option<u16>| port.map_or((host, 0), |port| (Ipv4Addr::LOCALHOST, port));
    let (services_host, services_port) = placed(placement.services_port);
    let services_listener = ports::listen(services_host, services_port)?;
    let services_address = services_listener.local_addr().map_err(StartError::Gateway)?;
    let geo_ip = settings.geo_ip_store.clone().unwrap_or_else(|| StoreAddress::Folder(data.geo_ip()));
    let geo_ip_store = geo_ip.to_string();
    let functions = FunctionCallers::new(template, settings, &geo_ip, &data.rights(), random.as_ref())?;
    let callers = Callers { operator: credentials.clone(), functions: Some(Arc::clone(&functions)) };
    let bundle =
        Bundle { template, settings, base_url: &base_url, services: services_address, geo_ip_store: &geo_ip_store };

    // The slow one first; it comes up while the table is opened.
    let socket = Socket::new(&data.scratch(), random.as_ref()).map_err(StartError::Processes)?;
    let ministack = services::start(group, &programs.hypercorn, &data.scratch(), &socket.path, services_address);
    tokio::spawn(relay::serve(services_listener, socket.path.clone(), callers.clone()));
    let secrets = Secrets::open(&data.secrets(), signing.algorithm)?;
    secrets.check_geo_ip()?;
    secrets.check_providers(&data.secrets(), &settings.address_rules())?;
    let (demo, platform) = (secrets.credentials(DEMO_APPLICATION)?, secrets.credentials(PLATFORM_APPLICATION)?);
    let table = open_table(template, data, placed(placement.table_port).into(), callers.clone()).await?;
    let services_endpoint = format!("http://{services_address}");
    let endpoints =
        Endpoints { credentials: credentials.clone(), table: table.endpoint.clone(), services: services_endpoint };
    let functions_endpoints = Endpoints {
        credentials: credentials.clone(),
        table: placement.functions_table.as_ref().unwrap_or(&endpoints.table).clone(),
        services: placement.functions_services.as_ref().unwrap_or(&endpoints.services).clone(),
    };

    let prefix = format!("waypost/{ENVIRONMENT}/");
    let services =
        Services::new(ministack, socket.path.clone(), endpoints.clone(), prefix, template.queues(), data.secrets())
            .with_bucket_of(&geo_ip);
    let filled = async { services.fill().await.map_err(StartError::from) };
    let provided = async { provide(&endpoints, &secrets, tokens, &demo, &platform).await.map_err(StartError::from) };
    tokio::try_join!(filled, provided)?;
    tokio::spawn(services.keep_filled());

    let names = template.functions().iter().map(|function| function.name.as_str());
    let runtime_api = RuntimeApi::start(names, host, Arc::clone(&random)).await.map_err(StartError::RuntimeApi)?;
    let mut processes = Vec::new();
    for function in template.functions() {
        let environment = bundle.environment(function)?;
        let endpoints = functions_endpoints.of(functions.credentials(&function.name));
        let process = workers::start(group, &programs.binaries, function, environment, &endpoints, &runtime_api);
        processes.push((function.clone(), process));
    }
    let invoker = Invoker::new(runtime_api, Arc::clone(&clock), processes);

    let (close_gateway, closed) = oneshot::channel::<()>();
    let gateway = Gateway::new(template, invoker.clone(), base_url.clone(), Arc::clone(&clock), Arc::clone(&random));
    let gateway = tokio::spawn(gateway.serve(listener, async { drop(closed.await) }));
    let lambda_listener = ports::listen(host, 0)?;
    let lambda_endpoint = format!("http://{}", lambda_listener.local_addr().map_err(StartError::Gateway)?);
    tokio::spawn(lambda_api::serve(lambda_listener, invoker.clone(), Callers { functions: None, ..callers }));

    Probe::new(gateway_address, invoker.clone()).wait(template, &demo).await?;
    for function in template.functions() {
        for trigger in &function.queues {
            let url = queue_url(services_address, &trigger.queue);
            let endpoints = endpoints.of(functions.credentials(&function.name));
            QueuePump::start(&function.name, trigger, url, endpoints.sqs(), invoker.clone());
        }
        if let Some(trigger) = &function.schedule {
            let pump = SchedulePump {
                function: function.name.clone(),
                input: trigger.input.clone(),
                pace: settings.pace(trigger),
                invoker: invoker.clone(),
                clock: Arc::clone(&clock),
                random: Arc::clone(&random),
            };
            tokio::spawn(pump.run());
        }
    }

    let service_env = ServiceEnv {
        base_url: &base_url,
        demo: &demo,
        platform: &platform,
        task_key: secrets.value("task-key")["key"].as_str().unwrap_or_default(),
        dynamodb_endpoint: &endpoints.table,
        services_endpoint: &endpoints.services,
        lambda_endpoint: &lambda_endpoint,
        aws: &credentials,
        geo_ip_store: &geo_ip_store,
    };
    write_private(&data.service_env(), service_env.content().as_bytes())?;
    eprintln!("{}", service_env::greeting(&base_url, data));
    Ok(Running { gateway, close_gateway, invoker, _table: table, _socket: socket })
}

async fn open_table(
    template: &Template,
    data: &DataFolder,
    address: SocketAddr,
    callers: Callers,
) -> Result<TableServer, StartError> {
    let table = template.tables().first().ok_or(StartError::NoTable)?.clone();
    let file = data.table();
    let opened = tokio::task::spawn_blocking(move || TableServer::start(&file, &table, address, callers));
    Ok(opened.await.map_err(StartError::Panic)??)
}

/// What operators' commands do on AWS: the public key, the first applications, and the index of webhooks' deliveries.
async fn provide(
    endpoints: &Endpoints,
    secrets: &Secrets,
    tokens: TokenSettings,
    demo: &Credentials,
    platform: &Credentials,
) -> Result<(), ProvisionError> {
    let table = Table::new(endpoints.dynamodb(), TABLE_NAME);
    let pepper = secrets.value("client-secret-pepper");
    webhook_index::ensure_filled(&table, SystemClock.now()).await?;
    publish_signing_key(&table, secrets.value("signing-key"), tokens.lifetime).await?;
    let application = |name: &str, entity: &str| {
        NewApplication::of_operator(name.to_owned(), Scopes::ALL, Entities::new([entity.to_owned()]))
    };
    register_application(&table, pepper, demo, application("Demo", MANAGING_ENTITY)).await?;
    register_application(&table, pepper, platform, application("Platform", Entities::EVERY)).await
}
