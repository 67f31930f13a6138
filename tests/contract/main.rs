//! The contract, over HTTP, against the running bundle: one bundle for most tests, and one of their own for those that
//! kill it.
//!
//! `cargo test -p contract-tests` runs everything, `cargo test -p contract-tests -- receivers::` only what a name
//! contains. A test is an async function that is named after the promise it keeps and stands in its module's `TESTS`;
//! one that is forgotten there is dead code, which the compiler reports.

mod access;
mod addresses;
mod addresses_alone;
mod agents;
mod agents_clients;
mod agents_conformance;
mod agents_diagnosis;
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
mod browser_panel_hostile;
mod browser_panel_pictures;
mod browser_panel_speed;
mod canary;
mod checks;
mod client_authentication;
mod clients;
mod crash;
mod crash_at_length;
mod crash_points;
mod deliveries;
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

use harness::Test;

fn main() -> ExitCode {
    // The slow ones come first, so that the quick ones run beside them. Those that need the machine alone come last.
    let modules: &[&[Test]] = &[
        payments_refresh::TESTS,
        revocation::TESTS,
        geo_ip_providers::TESTS,
        geo_ip_crash::TESTS,
        geo_ip_bucket::TESTS,
        addresses::TESTS,
        addresses_alone::TESTS,
        agents_diagnosis::TESTS,
        agents_resources::TESTS,
        agents_strangers::TESTS,
        agents_tools::TESTS,
        applications::TESTS,
        application_credentials::TESTS,
        application_grants::TESTS,
        application_operators::TESTS,
        crash_points::TESTS,
        crash::TESTS,
        crash_at_length::TESTS,
        queue_chaos::TESTS,
        table_chaos::TESTS,
        isolation::TESTS,
        isolation_measured::TESTS,
        isolation_names_alone::TESTS,
        kept_connections::TESTS,
        key_rotation::TESTS,
        signing_keys::TESTS,
        health::TESTS,
        metrics::TESTS,
        canary::TESTS,
        demo_provider::TESTS,
        dispatching::TESTS,
        operational_events::TESTS,
        operator_lists::TESTS,
        local_data::TESTS,
        local_run::TESTS,
        local_terminal::TESTS,
        stand_ins::TESTS,
        slow_clients::TESTS,
        slow_lane::TESTS,
        sweep::TESTS,
        pauses::TESTS,
        recover::TESTS,
        resend::TESTS,
        idempotency::TESTS,
        idempotency::records::TESTS,
        receivers::TESTS,
        receivers_broken::TESTS,
        documented_receivers::TESTS,
        retries::TESTS,
        delivery_list::TESTS,
        deliveries::TESTS,
        payments_secrecy::TESTS,
        payments_failures::TESTS,
        payments_callback::TESTS,
        payments_start::TESTS,
        payments_replacing::TESTS,
        pages::TESTS,
        panel_links::TESTS,
        panel_measured::TESTS,
        panel_page::TESTS,
        panel_sessions::TESTS,
        panel_sessions_delayed::TESTS,
        panel_sessions_killed::TESTS,
        payments::TESTS,
        ingest::TESTS,
        publish::TESTS,
        publishing_right::TESTS,
        publishing_share::TESTS,
        webhook_changes::TESTS,
        webhook_removal::TESTS,
        webhook_secrecy::TESTS,
        webhook_secrets::TESTS,
        webhook_test_event::TESTS,
        webhooks::TESTS,
        checks::TESTS,
        rights::TESTS,
        routes::TESTS,
        access::TESTS,
        agents::TESTS,
        agents_clients::TESTS,
        agents_conformance::TESTS,
        bodies::TESTS,
        oauth_clients::TESTS,
        client_authentication::TESTS,
        clients::TESTS,
        guesses::TESTS,
        token::TESTS,
        traces::TESTS,
        units::TESTS,
        waypost_admin::TESTS,
        introspection::TESTS,
        forged_tokens::TESTS,
        audit::TESTS,
        event_shown::TESTS,
        events::TESTS,
        geo_ip::TESTS,
        sam::TESTS,
        samples::TESTS,
        security_page::TESTS,
        openapi::TESTS,
        problems::TESTS,
        browser::TESTS,
        browser_panel::TESTS,
        browser_panel_access::TESTS,
        browser_panel_hostile::TESTS,
        browser_panel_pictures::TESTS,
        browser_panel_speed::TESTS,
        isolation_tenants::TESTS,
    ];
    harness::run(modules.concat())
}
