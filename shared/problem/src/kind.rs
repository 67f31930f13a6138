//! The kinds of Problem: one list with the types, statuses, titles and explanations.

use http::StatusCode;

macro_rules! kinds {
    ($($variant:ident = $slug:literal, $status:ident, $title:literal, $explanation:literal;)*) => {
        /// One kind of Problem. Its `type` is `{base_url}/problems/{slug}`, which resolves to a page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ProblemKind {
            $(#[doc = $title] $variant,)*
        }

        impl ProblemKind {
            /// Every kind.
            pub const ALL: &[ProblemKind] = &[$(Self::$variant,)*];

            /// The last segment of the type's address.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The kind with this slug.
            pub fn of_slug(slug: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
            }

            /// The HTTP status of every Problem of this kind.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// The sentence that is the same for every occurrence (RFC 9457 §3.1.3).
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// The page's text: the kind's meaning and the remedy.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }
        }
    };
}

kinds! {
    NotFound = "not-found", NOT_FOUND, "Address not found",
        "No route has this path. Paths are case-sensitive and have no trailing slash. All routes are listed at /openapi.json.";
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "This address does not support this method",
        "The path exists, but does not support this method. The response's Allow header lists the methods that it supports.";
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid access token is required",
        "The request has no access token, or its token is malformed, expired, revoked or meant for another service. Get a token from the token endpoint with the client_credentials grant and send it as `Authorization: Bearer …`. A token from staging does not work in production, and vice versa.";
    InsufficientScope = "insufficient-scope", FORBIDDEN, "The access token lacks a scope",
        "The token is valid, but was not issued for the scope that this operation needs; the WWW-Authenticate header names it. Request a token with that scope; if the issuer refuses, have the application registered for the scope. No scope implies another. To create or remove an application, or one of its secrets or keys, a token also needs all that application's scopes.";
    EntityNotCovered = "entity-not-covered", FORBIDDEN, "The access token does not cover this managing entity",
        "The token is valid, but its application may not act for the path's managing entity or, for a payment provider's callback, the connection's. A request that creates, changes or removes an application needs a token that covers all that application's managing entities (`properties.notCovered` lists the missing ones).";
    MayNotPublish = "may-not-publish", FORBIDDEN, "The application may not publish events",
        "Subscribers rely on a managing entity's events, so no scope includes the right to publish. An application's `mayPublish` and the `may_publish` claim of its tokens show whether it has the right. Only an application with this right can create, change or remove an application with `mayPublish`. The service's operator can grant or withdraw an existing application's right; the change takes effect with the next token. Test events do not need the right.";
    ForeignOrigin = "foreign-origin", FORBIDDEN, "The request comes from another site",
        "The browser's Origin header says that a page or script from another site sent the request. Only the panel's own page may use panel sessions, and only programs may use the endpoint for agents. Open the panel at this service's address, and call the endpoint for agents from a program, which sends no Origin header.";
    TaskRefused = "task-refused", FORBIDDEN, "The task was refused",
        "An operational task needs this deployment's task key in `key` and its name in `environment`. One of the two is wrong; the service does not disclose which. Check that the key belongs to this environment. The canary's receiver accepts only requests signed with the key of this deployment's canary.";
    UnsupportedVersion = "unsupported-version", BAD_REQUEST, "Unknown service version",
        "The Service-Version header asks for a version that does not exist. Omit it, or send one of the versions that `properties.supportedVersions` lists.";
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON",
        "Send the body as JSON in UTF-8 with the header `Content-Type: application/json`, and without `Content-Encoding`: compressed bodies are not accepted.";
    InvalidRequest = "invalid-request", BAD_REQUEST, "The request has invalid values",
        "Values in the path, the query or the body are missing, malformed or unknown. `properties.violations` lists each with its field and the rule it breaks. Unknown members are refused too, so a misspelt name is never silently ignored.";
    InvalidCursor = "invalid-cursor", BAD_REQUEST, "The cursor does not belong to this list",
        "A cursor is valid only for the list, managing entity and filters that it was issued for, and only until the operator rotates the keys that encrypt it. Send the previous page's `nextCursor` with the same filters, or omit `cursor` to start from the first page.";
    EventNotFound = "event-not-found", NOT_FOUND, "Event not found",
        "The managing entity has no event with this identifier, or its retention has ended. An event published with the response `kept: false` is not stored.";
    EventTypeNotFound = "event-type-not-found", NOT_FOUND, "Event type not found",
        "The catalogue has no event type with this key. All types are listed at …/webhook/event/list; the detail names similar ones.";
    WebhookNotFound = "webhook-not-found", NOT_FOUND, "Webhook not found",
        "The managing entity has no webhook with this identifier. Its webhooks are listed at …/webhook/list.";
    ApplicationNotFound = "application-not-found", NOT_FOUND, "Application not found",
        "The managing entity has no application with this client identifier. Its applications are listed at …/application/list.";
    CredentialNotFound = "credential-not-found", NOT_FOUND, "The application has no such secret or key",
        "The application has no secret or key with this identifier. The application's `secrets` and `publicKeys` list the existing ones.";
    DeliveryNotFound = "delivery-not-found", NOT_FOUND, "Delivery not found",
        "The managing entity has no delivery with this identifier, or its retention has ended.";
    ProviderNotFound = "provider-not-found", NOT_FOUND, "Payment provider not found",
        "The deployment has no payment provider with this name, or has not set it up. Names are in lower case, such as `stripe`. A built-in provider is available once the operator has stored the service's credentials for it in a secret; a custom provider has the name that the operator gave it. The detail names the built-in providers and suggests similar names.";
    ConnectionNotFound = "connection-not-found", NOT_FOUND, "Payment connection not found",
        "The managing entity is not connected to this payment provider, or has no connection with this identifier. Its connections are listed at …/payment/connection/list. The identifier that a connection request returns becomes valid when a person allows access, and remains so until the connection is replaced or removed.";
    ConnectionExists = "connection-exists", CONFLICT, "The payment provider is already connected",
        "The managing entity has a working connection to this payment provider, and connecting again could replace its account with a different one. If that is what you want, send `{\"replace\": true}`; `properties.account` names the connected account, if the provider reports one. A broken connection needs no `replace` if the person chooses the same account.";
    ConnectionReplaced = "connection-replaced", CONFLICT, "The payment provider was connected again in the meantime",
        "While the service was revoking the connection's access, a person connected the payment provider again. The new connection was not removed. To remove it too, send the request again. Otherwise, check that it works: some providers revoke all access to an account at once. If it is broken, connect again.";
    ProviderRevocationFailed = "provider-revocation-failed", SERVICE_UNAVAILABLE, "The payment provider did not revoke access",
        "The service asked the payment provider to revoke the access, and got no answer or an error. The connection is kept, because its access may still be valid. Send the request again after the time in the Retry-After header. If it keeps failing, revoke the access in the account settings at the provider, then remove the connection. If that does not help, ask the service's operator to check the provider's revocation address.";
    InvalidState = "invalid-state", BAD_REQUEST, "The link to or from the payment provider is not valid",
        "The `state` in the link is unknown, already used, older than ten minutes, or issued for another provider; or the browser that returned from the payment provider lacks the cookie from this service's start page. Nothing was connected. Go back to the admin panel and connect again, using one browser throughout.";
    VersionConflict = "version-conflict", CONFLICT, "The resource has changed in the meantime",
        "Another request changed the resource before yours could. Your request was not applied. Fetch the resource again and, if you still want the change, repeat the request, with the new version if you send one.";
    WebhookLimit = "webhook-limit", CONFLICT, "The managing entity already has the maximum number of webhooks",
        "The detail states the limit. Remove a webhook that you do not need, or subscribe one webhook to more event types.";
    ApplicationLimit = "application-limit", CONFLICT, "The managing entity already has the maximum number of \
                                                       applications",
        "The detail states the limit. Remove an application that you do not need.";
    ClientSecretLimit = "client-secret-limit", CONFLICT, "The application already has the maximum number of secrets",
        "An application can have two secrets at once: the new one and, for the requested overlap, the one that it replaced. Wait until the older one expires (`properties.oldestEndsDate`), or remove one of them.";
    PreviousSecretLive = "previous-secret-live", CONFLICT, "The previous signing secret is still active",
        "A webhook has at most two active signing secrets. The previous secret stays active until its overlap ends. Another replacement would deactivate it at once, and an endpoint without a newer secret would refuse every event. Nothing was done. If every endpoint has the current secret, wait until `properties.previousSecretExpiresDate` or send `{\"endPrevious\": true}`. If the current secret was lost, do not wait: send `{\"endPrevious\": true}` and give the endpoint the new secret at once. With an Idempotency-Key, you can get the secret again if the response is lost.";
    KeyExists = "key-exists", CONFLICT, "The application already has a key with this name",
        "Each key of an application has its own `kid`. Give the new key a different one, or remove the old key first.";
    KeyLimit = "key-limit", CONFLICT, "The application already has the maximum number of public keys",
        "The detail states the limit. Remove an unused key; the application's `publicKeys` shows when each was last used.";
    TooManyCredentials = "too-many-credentials", TOO_MANY_REQUESTS, "Too many applications, secrets and keys were created",
        "A managing entity can create a limited number of applications, secrets and keys per hour, across all its applications. Removals are not limited. Because every removal adds an entry to the list of revocations, this limit keeps that list short. Create more after the time in the Retry-After header.";
    PanelLinkNotFound = "panel-link-not-found", NOT_FOUND, "Panel link not found",
        "The managing entity has no panel link with this identifier, or the link's session has ended. …/panel/link/list lists the links that can be opened or have an active session.";
    PanelLinkRefused = "panel-link-refused", FORBIDDEN, "A panel session cannot create or renew links",
        "The access token belongs to a panel session. With a new link, the session could outlast its expiry. Create and renew links with a token from the token endpoint.";
    PanelLinkUnopened = "panel-link-unopened", CONFLICT, "The panel link has not been opened yet",
        "Renewing a link extends its session, which begins when the link is opened. Open the link within ten minutes of its creation, then renew it. The link's `lifetimeSeconds` counts from when it is opened.";
    TooManyPanelLinks = "too-many-panel-links", TOO_MANY_REQUESTS, "Too many panel links were created",
        "A managing entity can create a limited number of panel links per hour, across all its applications. Create more after the time in the Retry-After header.";
    InvalidPanelCode = "invalid-panel-code", BAD_REQUEST, "The panel link cannot be opened",
        "A panel link works once, within ten minutes, and only while the application that created it still has the link's scopes and the secret or key that it used. The detail gives the reason. Ask the person who gave you the link for a new one: `POST …/panel/link` creates it, or, on one machine, `make panel`.";
    NoPanelSession = "no-panel-session", FORBIDDEN, "No panel session",
        "The browser has no panel session, the session has expired or was ended, or its application was removed or lost one of the session's scopes. A session also ends if a browser sends an outdated cookie, because the cookie may have been copied. Open a new panel link.";
    ConfirmationRequired = "confirmation-required", CONFLICT, "The application would lose its own access",
        "The request would remove the application that sent it, that application's last secret or key, or some of its scopes. If the managing entity has no other application that can manage applications, only the service's operator could restore access. Nothing was done. To continue, send the request again with `?confirm=true`.";
    WebhookRemoved = "webhook-removed", CONFLICT, "The webhook was removed",
        "This delivery's webhook was removed, so the delivery cannot be sent again; you can still read its history. To send the event to another webhook, publish it again.";
    EventErased = "event-erased", CONFLICT, "The event's content was erased",
        "The content of this delivery's event was erased at its owner's request, so there is nothing left to send. The delivery still shows its attempts and their outcomes. If the event is still needed, publish it again from its source.";
    AttemptLimit = "attempt-limit", CONFLICT, "The delivery has reached its attempt limit",
        "The detail states the limit, which keeps a delivery's history short enough to show in full. You can still read the event. If it is still needed, publish it again.";
    AttemptUnderWay = "attempt-under-way", CONFLICT, "A delivery attempt is under way",
        "The event was already sent, or given to a feed reader, and cannot be recalled, so the delivery cannot be cancelled now. Nothing was changed. Most attempts end within seconds, and all of them by `properties.attemptEndsBy`; send the request again after that. If the attempt succeeds, the delivery is delivered.";
    DeliveryFinal = "delivery-final", CONFLICT, "The delivery is final",
        "You can cancel only a delivery that is pending or retrying. This one was delivered or has failed (`properties.status`), so no attempts follow. Nothing was changed.";
    RecoveryLimit = "recovery-limit", CONFLICT, "Too many ranges are being recovered",
        "The detail states how many separate ranges can be recovered at the same time. Wait until some have finished, or send one range that includes the others.";
    ReplayUnderWay = "replay-under-way", CONFLICT, "A replay of the webhook is under way",
        "A webhook has one replay at a time, and this request has another range or other types. Nothing was changed. Send the request again when the replay has ended: about two minutes after the end of its range, or later if it has many events. Until then, you can count the remaining events with `dryRun`, or repeat the request that began the replay.";
    WebhookDisabled = "webhook-disabled", CONFLICT, "The webhook is disabled",
        "A disabled webhook receives nothing, not even test events. Enable it first, with `{\"enabled\": true}`; if the service disabled it, fix the fault that `disabledReason` names before you do. Events published while it is disabled create no deliveries to it; you can deliver the stored ones later with `replayEvents`.";
    WebhookPulled = "webhook-pulled", CONFLICT, "The webhook has a feed and cannot be paused",
        "Only a webhook whose `delivery` is `push` can be paused. A pull webhook's events wait in its feed until the reader requests them, so stop the reader instead.";
    WebhookNotPulled = "webhook-not-pulled", CONFLICT, "The webhook has no feed",
        "Only a webhook whose `delivery` is `pull` has a feed. Events for any other webhook are sent to its `eventUrl`. Change the webhook with `{\"delivery\": \"pull\"}`, or create another one.";
    IdempotencyConflict = "idempotency-conflict", CONFLICT, "The idempotency key was used for another request",
        "You may repeat an Idempotency-Key only with the same body. Use a new key for a new request.";
    SecretNotRepeated = "secret-not-repeated", CONFLICT, "The secret is not shown again",
        "The request was already processed with this Idempotency-Key. Its response contains a secret, which the service repeats for ten minutes only. `properties.id` identifies the created resource. If the secret did not arrive, do not create the resource again: the webhook or application exists. `POST …/webhook/{webhookIdentifier}/secret` replaces the webhook's signing secret, `POST …/application/{clientId}/secret` gives the application another one (`properties.id` is the client identifier, or the identifier of a secret that can be removed), and a request with a new key returns a new link to the payment provider.";
    TooManyEvents = "too-many-events", TOO_MANY_REQUESTS, "The managing entity has published too many events",
        "The detail states how many deliveries a managing entity's events may create per minute. The limit keeps one entity from using up the others' capacity. An event counts once for each webhook that receives it, at least once, and at least once for every ten webhooks of the managing entity, rounded up. This count is multiplied by the request body's size in units of 4 KiB, rounded up. Every request to publish counts, including repetitions and requests with an invalid body. This request was not processed, and its Idempotency-Key is still unused: send it again after the time in the Retry-After header, when a new minute begins.";
    TooManyRequests = "too-many-requests", TOO_MANY_REQUESTS, "The managing entity has sent too many requests of this kind",
        "Some requests cost far more than others: recoveries, resumptions, test events and resends cause attempts at endpoints, a feed request waits for up to ten seconds, a list of open deliveries reads each webhook, and a filter check compares many events. Each managing entity has a limit for each of these; the detail states it. Nothing was done, and the Idempotency-Key is still unused: send the request again after the time in the Retry-After header, when a new minute begins.";
    PayloadTooLarge = "payload-too-large", PAYLOAD_TOO_LARGE, "The request is too large",
        "The body is larger than this operation accepts. A whole event, with the members that the service adds, may be up to 256 KiB.";
    HeadersTooLarge = "headers-too-large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's headers are too large",
        "The request line and all header values may have up to 10 240 bytes in total. Put large values in the body, which may be much larger.";
    RequestTimeout = "request-timeout", REQUEST_TIMEOUT, "The request did not arrive in time",
        "The body did not arrive, or arrived too slowly. Send the whole request again, on a new connection. If it fails again, look for a proxy that delays it, or a Content-Length larger than the body.";
    ServiceUnavailable = "service-unavailable", SERVICE_UNAVAILABLE, "The service is temporarily unavailable",
        "An internal dependency did not respond. Your request is not at fault: send it again after the time in the Retry-After header.";
    InternalError = "internal-error", INTERNAL_SERVER_ERROR, "The service failed",
        "An unexpected error occurred in the service. Send the request again later; if it keeps failing, report the Problem's `instance` to support.";
    InvalidTokenRequest = "invalid-token-request", BAD_REQUEST, "The token request is malformed",
        "The token issuer's endpoints accept a form (application/x-www-form-urlencoded). Send the client's credentials in one place only: in HTTP Basic, or as client_secret or client_assertion in the form. Send each parameter once; the detail names the missing or malformed parameter.";
    InvalidClient = "invalid-client", UNAUTHORIZED, "The client could not be authenticated",
        "The client identifier is unknown or its credential is invalid; the service does not disclose which. Check the credentials, and that they belong to this environment. A client assertion needs iss and sub (both the client identifier), aud (the token issuer's address or the endpoint's), exp (at most an hour ahead), a jti that was never used before, and a signature by a registered key, with that key's algorithm.";
    TooManyAttempts = "too-many-attempts", TOO_MANY_REQUESTS, "Too many failed authentication attempts",
        "Too many authentication attempts from your address, as this client or as several clients, have failed in the current minute and the five before it. Until the time in the Retry-After header has passed, the service refuses further attempts from this address, even with valid credentials; the client can still authenticate from other addresses. Check the credentials before you try again.";
    ForeignToken = "foreign-token", BAD_REQUEST, "The token was issued to another application",
        "An application can revoke only its own tokens. A platform-wide application registered for account.remove can revoke any token.";
    InvalidScope = "invalid-scope", BAD_REQUEST, "A requested scope cannot be granted",
        "One of the requested scopes does not exist, or the application is not registered for it. The whole request fails, so that no client gets fewer rights than it expects. Without the scope parameter, a token has all the application's scopes.";
    InvalidTarget = "invalid-target", BAD_REQUEST, "The token was requested for another service",
        "A `resource` in the token request (RFC 8707) does not belong to this service. Name the API's address for a token that is valid everywhere, or the address of the endpoint for agents, `/mcp`, for a token that is valid only there; /.well-known/oauth-protected-resource lists both. Without the parameter, a token is valid everywhere.";
    UnsupportedResponseType = "unsupported-response-type", BAD_REQUEST, "User sign-in is not available",
        "Applications request their own tokens at the token endpoint, with the client_credentials grant, a client identifier, and a secret or key. The issuer's metadata lists an authorization endpoint only because client libraries require one. Configure the library for client credentials, and register an application if you have none.";
    UnsupportedGrantType = "unsupported-grant-type", BAD_REQUEST, "This grant is not supported",
        "The token endpoint supports only the client_credentials grant.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_kind_has_a_unique_slug_and_an_error_status() {
        let slugs: HashSet<_> = ProblemKind::ALL.iter().map(|kind| kind.slug()).collect();
        assert_eq!(slugs.len(), ProblemKind::ALL.len());
        for kind in ProblemKind::ALL {
            assert_eq!(ProblemKind::of_slug(kind.slug()), Some(*kind));
            assert!(kind.status().is_client_error() || kind.status().is_server_error());
            assert!(kind.slug().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", kind.slug());
        }
        assert_eq!(ProblemKind::of_slug("nothing"), None);
    }
}
