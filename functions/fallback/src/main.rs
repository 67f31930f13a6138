//! Whatever no route takes: 404, or 405 with the verbs that the path does take.

use shared::{
    Service, StartError,
    http::{Endpoint, Problem, routes},
};

include!(concat!(env!("OUT_DIR"), "/routes.rs"));

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service
        .serve(Endpoint::public(), async |call| {
            let allowed = routes::verbs_of(ROUTES, call.whole_path());
            // A path that takes the verb after all was no route as it was sent: it only decodes to one.
            let no_route = allowed.is_empty() || allowed.contains(&call.method().as_str());
            Err(if no_route {
                Problem::no_route(call.whole_path())
            } else {
                Problem::wrong_verb(call.method(), &allowed)
            })
        })
        .await
}
