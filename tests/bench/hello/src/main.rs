//! The least that a function on `lambda_http` can be: what the bench compares with.

use lambda_http::{Error, Request, run, service_fn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(async |_: Request| Ok::<_, Error>("hello"))).await
}
