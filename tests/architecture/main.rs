//! The architecture of the code: dependencies between crates, circles between files, and the code's agreement with
//! template.yaml, openapi.yaml, the documents and the panel. The tests also check the alarms and their metrics, AWS's
//! rules for template.yaml, `make deploy`, rollbacks of updates, pinned tools, readable log lines, and the simulation's
//! planted bugs.

mod agents;
mod circles;
mod crates;
mod deploying;
mod deploying_answers;
mod deploying_tables;
mod deploying_versions;
mod desk;
mod documents;
mod endpoints;
mod examples;
mod features;
mod language;
mod log_lines;
mod metrics;
mod names;
mod panel;
mod planted;
mod problem_properties;
mod releases;
mod schemas;
mod service_grants;
mod template;
mod tools;
