//! The contract, over HTTP, against the running bundle: one bundle for most tests, and a separate one for tests that
//! kill it.
//!
//! `cargo test --workspace --test contract` runs all tests, and with `-- receivers::` at its end those whose names
//! contain `receivers::`. Build the service first (`cargo build --package local --package local-functions --bins`). A
//! test is an async function with the attribute `#[contract_test]`, named after the promise it proves.

mod access;
mod addresses;
mod addresses_alone;
mod agents;
mod agents_clients;
mod agents_conformance;
mod agents_diagnosis;
mod agents_events;
mod agents_resources;
mod agents_strangers;
mod agents_tools;
mod application_credentials;
mod application_grants;
mod application_operators;
mod applications;
mod audit;
mod bodies;
mod browser;
mod browser_panel;
mod browser_panel_access;
mod browser_panel_deliveries;
mod browser_panel_hostile;
mod browser_panel_pictures;
mod browser_panel_speed;
mod browser_panel_webhooks;
mod canary;
mod checks;
mod client_authentication;
mod clients;
mod crash;
mod crash_at_length;
mod crash_points;
mod deliveries;
mod delivery_filters;
mod delivery_list;
mod demo_provider;
mod dispatching;
mod documented_receivers;
mod event_shown;
mod events;
mod forged_tokens;
mod geo_ip;
mod geo_ip_bucket;
mod geo_ip_crash;
mod geo_ip_providers;
mod guesses;
mod harness;
mod health;
mod idempotency;
mod ingest;
mod introspection;
mod isolation;
mod isolation_measured;
mod isolation_names_alone;
mod isolation_tenants;
mod kept_connections;
mod key_rotation;
mod late_publications;
mod local_data;
mod local_run;
mod local_terminal;
mod metrics;
mod oauth_clients;
mod openapi;
mod operational_events;
mod operator_lists;
mod pages;
mod panel_links;
mod panel_measured;
mod panel_page;
mod panel_sessions;
mod panel_sessions_delayed;
mod panel_sessions_killed;
mod pauses;
mod payments;
mod payments_callback;
mod payments_failures;
mod payments_refresh;
mod payments_replacing;
mod payments_secrecy;
mod payments_start;
mod problems;
mod publish;
mod publishing_right;
mod publishing_share;
mod queue_chaos;
mod receivers;
mod receivers_broken;
mod recover;
mod release_data;
mod resend;
mod retries;
mod revocation;
mod rights;
mod routes;
mod sam;
mod samples;
mod security_page;
mod signing_keys;
mod slow_clients;
mod slow_lane;
mod stand_ins;
mod subjects;
mod sweep;
mod table_chaos;
mod token;
mod traces;
mod units;
mod waypost_admin;
mod webhook_changes;
mod webhook_removal;
mod webhook_secrecy;
mod webhook_secrets;
mod webhook_test_event;
mod webhooks;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::run()
}
