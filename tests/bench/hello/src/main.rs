//! A minimal function on `lambda_http`, the baseline of the bench.

use lambda_http::{Error, Request, run, service_fn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(async |_: Request| Ok::<_, Error>("hello"))).await
}
