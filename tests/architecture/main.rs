//! The shape of the code: which crate may use which, that no files of one crate use each other in a circle, that
//! endpoints are declared as template.yaml, openapi.yaml and the documents say, and that the documents are true of the
//! code, and that alarms, dashboard and runbook name metrics that there are. Also what template.yaml must hold on AWS, how
//! `make deploy` deploys it, how an update is taken back, that what commands fetch is pinned, and that the log is readable; and that the panel says what the
//! service says.

mod circles;
mod crates;
mod deploying;
mod documents;
mod endpoints;
mod features;
mod log_lines;
mod metrics;
mod panel;
mod releases;
mod service_grants;
mod template;
mod tools;
