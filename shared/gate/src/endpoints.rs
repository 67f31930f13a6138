//! All of the service's endpoints in one table: access, formats of requests and errors, and the action in the audit
//! trail. The paths and verbs are in template.yaml, under the functions with the same names.

use auth::Resource;
use auth::scope::Scope::{
    AccountRead, AccountRemove, AccountWrite, IntegrationsRead, IntegrationsRemove, IntegrationsWrite, McpRead,
    PaymentRead, PaymentRemove, PaymentWrite,
};
use base::audit::Action;

use crate::{Call, Endpoint, EntityCall, endpoint::Declaration};

macro_rules! endpoints {
    ($($(#[$doc:meta])* $name:ident: $call:ty = $function:literal, $endpoint:expr;)*) => {
        $(
            #[doc = concat!("The endpoint of the function `", $function, "`.")]
            $(#[$doc])*
            pub const $name: Endpoint<$call> = $endpoint;
        )*

        /// Each endpoint's declaration, by its function's name.
        pub const ALL: &[(&str, Declaration)] = &[$(($function, $name.declaration()),)*];
    };
}

endpoints! {
    // The token issuer.
    TOKEN: Call = "token", Endpoint::public().with_oauth_errors().audited(Action::IssueToken);
    REVOKE_TOKEN: Call = "revoke-token", Endpoint::public().with_oauth_errors().audited(Action::RevokeToken);
    INTROSPECT_TOKEN: Call = "introspect-token", Endpoint::public().with_oauth_errors().audited(Action::IntrospectToken);
    TOKEN_METADATA: Call = "token-metadata", Endpoint::public().readable_from_any_origin();
    RESOURCE_METADATA: Call = "resource-metadata", Endpoint::public().readable_from_any_origin();
    AUTHORIZE: Call = "authorize", Endpoint::public().with_oauth_errors().opened_by_people();
    TOKEN_KEYS: Call = "token-keys", Endpoint::public().readable_from_any_origin();

    // Applications.
    CREATE_APPLICATION: EntityCall = "create-application",
        Endpoint::needs(AccountWrite).giving_credentials().taking_json().audited(Action::CreateApplication);
    LIST_APPLICATIONS: EntityCall = "list-applications", Endpoint::needs(AccountRead);
    SHOW_APPLICATION: EntityCall = "show-application", Endpoint::needs(AccountRead);
    CHANGE_APPLICATION: EntityCall = "change-application",
        Endpoint::needs(AccountWrite).giving_credentials().taking_json().audited(Action::ChangeApplication);
    REMOVE_APPLICATION: EntityCall = "remove-application",
        Endpoint::needs(AccountRemove).audited(Action::RemoveApplication);
    ADD_APPLICATION_SECRET: EntityCall = "add-application-secret",
        Endpoint::needs(AccountWrite).giving_credentials().taking_json().audited(Action::CreateSecret);
    REMOVE_APPLICATION_SECRET: EntityCall = "remove-application-secret",
        Endpoint::needs(AccountRemove).audited(Action::RemoveSecret);
    ADD_APPLICATION_KEY: EntityCall = "add-application-key",
        Endpoint::needs(AccountWrite).giving_credentials().taking_json().audited(Action::CreateKey);
    REMOVE_APPLICATION_KEY: EntityCall = "remove-application-key",
        Endpoint::needs(AccountRemove).audited(Action::RemoveKey);

    // Webhooks.
    CREATE_WEBHOOK: EntityCall = "create-webhook", Endpoint::needs(IntegrationsWrite).giving_credentials().taking_json();
    LIST_WEBHOOKS: EntityCall = "list-webhooks", Endpoint::needs(IntegrationsRead);
    SHOW_WEBHOOK: EntityCall = "show-webhook", Endpoint::needs(IntegrationsRead);
    CHANGE_WEBHOOK: EntityCall = "change-webhook", Endpoint::needs(IntegrationsWrite).taking_json();
    REMOVE_WEBHOOK: EntityCall = "remove-webhook", Endpoint::needs(IntegrationsRemove);
    ROTATE_WEBHOOK_SECRET: EntityCall = "rotate-webhook-secret", Endpoint::needs(IntegrationsWrite).giving_credentials().taking_json();
    END_PREVIOUS_SECRET: EntityCall = "end-previous-secret", Endpoint::needs(IntegrationsRemove);
    TEST_WEBHOOK: EntityCall = "test-webhook", Endpoint::needs(IntegrationsWrite).taking_json();
    RESUME_WEBHOOK: EntityCall = "resume-webhook", Endpoint::needs(IntegrationsWrite).taking_json();
    WEBHOOK_STATS: EntityCall = "webhook-stats", Endpoint::needs(IntegrationsRead);

    READ_FEED: EntityCall = "read-feed", Endpoint::needs(IntegrationsWrite).taking_json().with_deadline(20);
    /// Records a reader's answers and extends its leases.
    ACKNOWLEDGE_FEED: EntityCall = "acknowledge-feed", Endpoint::needs(IntegrationsWrite).taking_json();

    // Events and their deliveries.
    LIST_EVENT_TYPES: EntityCall = "list-event-types", Endpoint::needs(IntegrationsRead);
    SHOW_EVENT_TYPE: EntityCall = "show-event-type", Endpoint::needs(IntegrationsRead);
    CHECK_EVENT_FILTER: EntityCall = "check-event-filter", Endpoint::needs(IntegrationsRead).taking_json();
    PUBLISH_EVENT: EntityCall = "publish-event", Endpoint::needs(IntegrationsWrite).for_publishers().taking_json();
    SHOW_EVENT: EntityCall = "show-event", Endpoint::needs(IntegrationsRead);
    ERASE_EVENT: EntityCall = "erase-event", Endpoint::needs(IntegrationsRemove);
    LIST_DELIVERIES: EntityCall = "list-deliveries", Endpoint::needs(IntegrationsRead);
    SHOW_DELIVERY: EntityCall = "show-delivery", Endpoint::needs(IntegrationsRead);
    RESEND_DELIVERY: EntityCall = "resend-delivery", Endpoint::needs(IntegrationsWrite).taking_json();
    CANCEL_DELIVERY: EntityCall = "cancel-delivery", Endpoint::needs(IntegrationsWrite).taking_json();
    RECOVER_DELIVERIES: EntityCall = "recover-deliveries", Endpoint::needs(IntegrationsWrite).taking_json();

    // Connections to payment providers.
    CONNECT_PROVIDER: EntityCall = "connect-provider", Endpoint::needs(PaymentWrite).giving_credentials().taking_json();
    /// The deadline includes 10 s for the provider, and 5 s for a refresh that is in flight.
    DISCONNECT_PROVIDER: EntityCall = "disconnect-provider", Endpoint::needs(PaymentRemove).with_deadline(25);
    /// Lists and shows connections, and lists the providers that are set up.
    LIST_CONNECTIONS: EntityCall = "list-connections", Endpoint::needs(PaymentRead);
    PROVIDER_START: Call = "provider-start", Endpoint::public().opened_by_people();
    /// The deadline is a second longer than the limit of a callback (`payments::callback::LIMIT`).
    PROVIDER_CALLBACK: Call = "provider-callback",
        Endpoint::optional_token(PaymentWrite).with_empty_internal_errors().with_deadline(27).opened_by_people();
    PROVIDER_OUTCOME: Call = "provider-outcome", Endpoint::public().opened_by_people();

    // The panel.
    PANEL: Call = "panel", Endpoint::public().opened_by_people();
    /// Opens, renews and ends sessions. The code or the cookie is the credential.
    PANEL_SESSION: Call = "panel-session", Endpoint::public().audited(Action::RenewPanelSession);
    CREATE_PANEL_LINK: EntityCall = "create-panel-link",
        Endpoint::needs(IntegrationsWrite).giving_credentials().taking_json().audited(Action::CreatePanelLink);
    LIST_PANEL_LINKS: EntityCall = "list-panel-links", Endpoint::needs(IntegrationsRead);
    RENEW_PANEL_LINK: EntityCall = "renew-panel-link",
        Endpoint::needs(IntegrationsWrite).giving_credentials().taking_json().audited(Action::RenewPanelLink);
    REMOVE_PANEL_LINK: EntityCall = "remove-panel-link",
        Endpoint::needs(IntegrationsRemove).audited(Action::RemovePanelLink);

    // The geo-IP databases.
    /// Providers of databases are slow. The deadline is below the API's limit of 30 s.
    GEO_IP_UPDATE: Call = "geo-ip-update",
        Endpoint::any_scope().taking_json().with_empty_internal_errors().with_deadline(27);

    // Agents.
    /// Each tool checks the scopes that it needs in addition to this one. Some tools create secrets.
    MCP: Call = "mcp",
        Endpoint::needs_without_entity(McpRead).giving_credentials().at(Resource::Mcp).for_own_origin().taking_json().with_json_rpc_errors();

    // The canary.
    /// The signature is the credential.
    CANARY_RECEIVER: Call = "canary-receiver", Endpoint::public();

    // The API as a whole.
    REFERENCE: Call = "reference", Endpoint::public().opened_by_people();
    OPENAPI: Call = "openapi", Endpoint::public().readable_from_any_origin();
    ASYNCAPI: Call = "asyncapi", Endpoint::public().readable_from_any_origin();
    PROBLEM_PAGE: Call = "problem-page", Endpoint::public().opened_by_people();
    FALLBACK: Call = "fallback", Endpoint::public().opened_by_people();
}

/// The declaration of a function's endpoint.
pub fn of_function(name: &str) -> Option<Declaration> {
    ALL.iter().find(|(function, _)| *function == name).map(|(_, declaration)| *declaration)
}
