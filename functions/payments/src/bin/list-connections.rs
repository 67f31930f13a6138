//! GET …/payment/connection/list: a managing entity's connections to payment providers. GET
//! …/payment/connection/{connectionIdentifier}: one of them. GET …/payment/provider/list: the providers that are set up.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use payments::{
    Connections,
    list::ConnectionListRequest,
    provider_list::{ProviderList, ProviderListRequest},
};
use problem::Problem;
use storage::SecretSettings;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let endpoint = ConnectionsEndpoint {
        connections: Connections::new(service.table()),
        providers: ProviderList::new(service.secrets(secrets), service.clock()),
    };
    service.serve(endpoints::LIST_CONNECTIONS, endpoint, read).await
}

/// Shows connections, and the providers to choose from.
struct ConnectionsEndpoint {
    connections: Connections,
    providers: ProviderList,
}

async fn read(endpoint: &ConnectionsEndpoint, call: EntityCall) -> Result<Reply, Problem> {
    let ConnectionsEndpoint { connections, providers } = endpoint;
    match call.route() {
        route if route.ends_with("/payment/provider/list") => {
            let request = ProviderListRequest::of_query(call.read_query())?;
            Reply::ok(&providers.page(&request).await?)
        }
        route if route.ends_with("/{connectionIdentifier}") => {
            Reply::ok(&connections.show(&call.entity, call.path("connectionIdentifier")).await?.view())
        }
        _ => {
            let request = ConnectionListRequest::of_query(call.read_query())?;
            Reply::ok(&connections.page(&call.entity, &request).await?.view())
        }
    }
}
