//! POST /task/geo-ip-update, and a schedule: keeps the geo-IP databases up to date.

use function::{Scheduled, Service, StartError};
use gate::{Call, Reply, endpoints};
use geo_ip::{Task, task::TaskRequest};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, geo_ip)) = Service::start().await?;
    let environment = service.settings().environment.clone();
    let secrets = service.secrets(secrets);
    let task = Task::new(service.aws(), secrets, geo_ip, environment, service.clock(), service.random());
    service.serve_with_schedule(endpoints::GEO_IP_UPDATE, task, run, |task, Scheduled| task.scheduled()).await
}

async fn run(task: &Task, call: Call) -> Result<Reply, Problem> {
    let request = TaskRequest::read(&call.body, &call.query("live"))?;
    Reply::ok(&task.requested(&request).await?)
}
