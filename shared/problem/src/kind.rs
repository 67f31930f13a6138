//! The kinds of Problem: one list, from which types, statuses, titles and the explaining pages come.

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

            /// The last part of the type's address.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The kind of this slug.
            pub fn of_slug(slug: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
            }

            /// The status that it is always answered with.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// The sentence that is the same for every occurrence (RFC 9457 §3.1.3).
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// What the page says: what it means and what to do.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)* }
            }
        }
    };
}

kinds! {
    NotFound = "not-found", NOT_FOUND, "There is nothing at this address",
        "No route has this path. Paths are case-sensitive and have no slash at their end. The whole list of routes is at /openapi.json.";
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "This address does not take this verb",
        "The path exists, but not with this verb. The Allow header of the answer lists the verbs that it takes.";
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid access token is needed",
        "The request carried no access token, or one that is malformed, expired, revoked or meant for another service. Get one from the token endpoint with the client_credentials grant and send it as `Authorization: Bearer …`. Tokens of staging do not work in production, nor the other way round.";
    InsufficientScope = "insufficient-scope", FORBIDDEN, "The access token lacks a scope",
        "The token is valid, but was not issued for the scope that this operation needs; the WWW-Authenticate header names it. Ask for a token with that scope; if the issuer refuses it, have the application registered for it. One scope does not imply another. Whoever makes or removes an application, or a secret or a key of one, needs all scopes of that application as well.";
    EntityNotCovered = "entity-not-covered", FORBIDDEN, "The access token does not cover this managing entity",
        "The token is valid, but was issued to an application that may not act for the managing entity that the request is about: the one in the path, in a payment provider's callback the one that the connection is for, or one that an application is registered for which is to be made, changed or removed (`properties.notCovered` then lists those).";
    MayNotPublish = "may-not-publish", FORBIDDEN, "The application may not publish events",
        "Subscribers rely on the events of a managing entity, so that not every application that may look after its webhooks may publish as well. An application says whether it may (`mayPublish`), and its tokens say so in the claim `may_publish`. A new application may if it is made with `mayPublish`, by an application that may itself; making, changing or removing one that may publish takes the same right. The operator of the service gives the right to an application that exists, and takes it; tokens say so from the next one on. Test events of a webhook need no such right.";
    ForeignOrigin = "foreign-origin", FORBIDDEN, "The request comes from another site",
        "A script or a page of another site has sent the request, as the Origin header says that a browser adds. Sessions of the panel belong to the panel's own page, and the endpoint for agents is for programs, so that no page that somebody has open can use either. Open the panel at the address of this service, and call the endpoint for agents from a program, which sends no such header.";
    TaskRefused = "task-refused", FORBIDDEN, "The task was refused",
        "An operational task needs the task key of this deployment in `key` and this deployment's name in `environment`. One of the two is wrong; which is not said. Check that the key is the one of this environment. The canary's receiver takes only what is signed with the key of this deployment's canary.";
    UnsupportedVersion = "unsupported-version", BAD_REQUEST, "There is no such version of the service",
        "The Service-Version header asks for a version that does not exist. Leave it out, or send one of the versions that `properties.supportedVersions` lists.";
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON",
        "Send the body as JSON in UTF-8 with the header `Content-Type: application/json`, and without `Content-Encoding`: a compressed body is not taken.";
    InvalidRequest = "invalid-request", BAD_REQUEST, "The request has invalid values",
        "One or more values of the path, the query or the body are missing, malformed or unknown. `properties.violations` lists every one of them with its field and what it should be. Members that the operation does not know are refused as well, so that a misspelt name is never silently lost.";
    EventNotFound = "event-not-found", NOT_FOUND, "There is no such event",
        "The managing entity has no event with this identifier, it is older than the time for which events are kept, or no webhook wanted it when it was published: such an event is not kept.";
    WebhookNotFound = "webhook-not-found", NOT_FOUND, "There is no such webhook",
        "The managing entity has no webhook with this identifier. Its webhooks are listed at …/webhook/list.";
    ApplicationNotFound = "application-not-found", NOT_FOUND, "There is no such application",
        "The managing entity has no application with this client identifier. Its applications are listed at …/application/list.";
    CredentialNotFound = "credential-not-found", NOT_FOUND, "The application has no such secret or key",
        "The application has no secret, or no key, with this identifier. What it has stands in `secrets` and `publicKeys` of the application.";
    DeliveryNotFound = "delivery-not-found", NOT_FOUND, "There is no such delivery",
        "The managing entity has no delivery with this identifier, or it is older than the time for which deliveries are kept.";
    ProviderNotFound = "provider-not-found", NOT_FOUND, "There is no such payment provider",
        "The deployment has no payment provider of this name, or none that is set up. Names are in lower case, such as `stripe`. A built-in provider exists once the operator of the service has put this service's credentials there into its secret; a provider of the operator's own has the name that the operator gave it. The detail names those that are built in, and those near the name that was sent.";
    ConnectionNotFound = "connection-not-found", NOT_FOUND, "There is no connection to this payment provider",
        "The managing entity is not connected to this payment provider. Its connections are listed at …/payment/provider/list.";
    ConnectionExists = "connection-exists", CONFLICT, "The payment provider is connected already",
        "The managing entity has a working connection to this payment provider, and connecting again could put another account in its place. Send `{\"replace\": true}` if that is meant; `properties.account` names the account that is connected now, where the provider names it. A connection that is broken needs no `replace` as long as the same account is connected again.";
    InvalidState = "invalid-state", BAD_REQUEST, "The link to or from the payment provider is not valid",
        "The `state` in the link is unknown, used, older than ten minutes, or was made for another provider; or the browser that came back from the payment provider is not the one that went there from this service's start page, with its cookies. Go back to the admin panel and connect again, in one browser; nothing was connected.";
    VersionConflict = "version-conflict", CONFLICT, "The resource was changed in the meantime",
        "The version that was sent, or that the service read itself for this request, is no longer the current one: somebody else has changed the resource meanwhile, and nothing was done. Read the resource again, and repeat the change if it is still wanted, with the new version where one is sent.";
    WebhookLimit = "webhook-limit", CONFLICT, "The managing entity has as many webhooks as it may have",
        "A managing entity may have a limited number of webhooks, which the detail names. Remove one that is no longer needed, or let one webhook subscribe to more event types.";
    ApplicationLimit = "application-limit", CONFLICT, "The managing entity has as many applications as it may have",
        "A managing entity may have a limited number of applications, which the detail names. Remove one that is no longer needed.";
    ClientSecretLimit = "client-secret-limit", CONFLICT, "The application has as many secrets as it may have",
        "A secret that was replaced is accepted beside its successor for the overlap that was asked for. An application may have two secrets at once. Wait until the older has ended, which `properties.oldestEndsDate` tells, or remove one of the two.";
    PreviousSecretLive = "previous-secret-live", CONFLICT, "The signing secret before the present one still signs",
        "Two signing secrets of a webhook sign at most. The one that was replaced last signs until the end of its overlap, as promised. A further replacement would end it at once, and an endpoint that has no newer secret would refuse every event. Nothing was done. If every endpoint has the present secret, wait until `properties.previousSecretExpiresDate` or send `{\"endPrevious\": true}`. If the present secret was lost, do not wait: send `{\"endPrevious\": true}` and give the endpoint the new secret at once. An `Idempotency-Key` keeps a lost answer from losing the secret.";
    KeyExists = "key-exists", CONFLICT, "The application has a key of this name",
        "The keys of an application are told apart by their `kid`. Give the new key another one, or remove the old key first.";
    KeyLimit = "key-limit", CONFLICT, "The application has as many public keys as it may have",
        "An application may have a limited number of public keys, which the detail names. Remove one that is no longer used; `publicKeys` of the application tells when each was used last.";
    TooManyCredentials = "too-many-credentials", TOO_MANY_REQUESTS, "Too many applications, secrets and keys were made",
        "When an application, a secret or a key is removed, every function has to know for a day that its tokens have ended. Removing is never refused, so a managing entity may make a limited number of them in an hour, all its applications together. Make more after the time in the Retry-After header.";
    PanelLinkNotFound = "panel-link-not-found", NOT_FOUND, "There is no such link to the panel",
        "The managing entity has no link to the panel with this identifier, or its session has come to its end. Those that can be opened, and those whose session goes on, are listed at …/panel/link/list.";
    PanelLinkRefused = "panel-link-refused", FORBIDDEN, "A session of the panel makes no links",
        "The access token belongs to a session of the panel, which ends at a certain time. A link that it made could outlive it. Make the link with a token that an application has got from the token endpoint.";
    TooManyPanelLinks = "too-many-panel-links", TOO_MANY_REQUESTS, "Too many links to the panel were made",
        "A managing entity may make a limited number of links to the panel in an hour, all its applications together. Make more after the time in the Retry-After header.";
    InvalidPanelCode = "invalid-panel-code", BAD_REQUEST, "The link to the panel opens nothing",
        "A link to the panel can be opened once, for ten minutes, and for as long as the application that made it is there with the secret or key that it used. The detail says which of these it is. Ask the one who gave the link for a new one: `POST …/panel/link` makes it, and on one machine `make panel`.";
    NoPanelSession = "no-panel-session", FORBIDDEN, "There is no session of the panel",
        "The browser has no session of the panel, or no longer: it has come to its end, somebody has ended it, or the application behind it was removed. A session whose replaced cookie comes again is ended as well, since somebody may have copied it. Open a new link to the panel.";
    ConfirmationRequired = "confirmation-required", CONFLICT, "The application would end its own access",
        "The request would remove the very application whose access token came with it, or its last secret or key. Whoever looks after applications with it could do so no longer, and if no other application of the managing entity may, only the operator of the service could help. Nothing was done. If it is meant, send the request again with `?confirm=true`.";
    WebhookRemoved = "webhook-removed", CONFLICT, "The webhook was removed",
        "A delivery goes to the webhook that it was made for. That webhook was removed, so that the delivery cannot be sent again; its history can still be read. Publish the event again if another webhook is to get it.";
    AttemptLimit = "attempt-limit", CONFLICT, "The delivery has had as many attempts as it may have",
        "A delivery can be sent again until it has had a limited number of attempts, which the detail names, so that its whole history can be shown. Its event can still be read there; publish it again if it is still needed.";
    RecoveryLimit = "recovery-limit", CONFLICT, "Too many ranges are being recovered",
        "The deliveries of a webhook can be recovered in a limited number of separate ranges at a time, which the detail names. Ask again when some are done, or for one range that holds the others.";
    WebhookDisabled = "webhook-disabled", CONFLICT, "The webhook is disabled",
        "Nothing is sent to a webhook that is disabled, test events included. Enable it first, with `{\"enabled\": true}`; if the service disabled it, its `disabledReason` says what to mend before. What is published while it is disabled makes no delivery to it, so that recovering has nothing of that: read the state from its source.";
    IdempotencyConflict = "idempotency-conflict", CONFLICT, "The idempotency key was used for another request",
        "An Idempotency-Key may be sent again only with the very same body. Use a new key for a new request.";
    SecretNotRepeated = "secret-not-repeated", CONFLICT, "The secret is not shown again",
        "The request was carried out when its Idempotency-Key first came, so it is not carried out again, and its answer shows a secret, which is repeated under the same key for ten minutes only. `properties.id` names what the request made. If the secret did not arrive, do not make the same once more: the webhook or application exists. `POST …/webhook/{webhookIdentifier}/secret` replaces the signing secret of the webhook, `POST …/application/{clientId}/secret` gives the application another one (`properties.id` is the client identifier, or the identifier of a secret that can be removed), and another request with a new key gives a new link to the payment provider.";
    TooManyEvents = "too-many-events", TOO_MANY_REQUESTS, "The managing entity has published too many events",
        "A managing entity may publish a limited number of events in a minute, which the detail names, so that each leaves the others room. A large event counts several times: once for each 4 KiB of the request's body that it begins. Every request to publish counts, repetitions and requests with a wrong body included. Nothing of this request was looked at, and its Idempotency-Key is not used: send it again after the time in the Retry-After header, when a new minute begins.";
    TooManyRequests = "too-many-requests", TOO_MANY_REQUESTS, "The managing entity has sent too many requests of this kind",
        "A recovery, the end of a pause, a test event and a delivery that is sent again each cause attempts at an endpoint, thousands in the case of a recovery. So a managing entity may send a limited number of these requests in a minute, which the detail names. Nothing was done, and the Idempotency-Key is not used: send the request again after the time in the Retry-After header, when a new minute begins.";
    PayloadTooLarge = "payload-too-large", PAYLOAD_TOO_LARGE, "The request is too large",
        "The body is larger than this operation takes. A whole event, with the members that the service adds, may have 256 KiB.";
    HeadersTooLarge = "headers-too-large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The headers of the request are too large",
        "The request line and the values of all headers may have 10 240 bytes together. A body may be much larger: put there what is large.";
    RequestTimeout = "request-timeout", REQUEST_TIMEOUT, "The request did not come in time",
        "The body was announced and did not come, or came too slowly. Send the whole request again, on a new connection; if it goes wrong again, look for what holds it up on its way, or announces a longer body than it sends.";
    ServiceUnavailable = "service-unavailable", SERVICE_UNAVAILABLE, "The service cannot answer at the moment",
        "Something that the answer needs did not respond. Nothing is wrong with the request: send it again after the time in the Retry-After header.";
    InternalError = "internal-error", INTERNAL_SERVER_ERROR, "The service failed",
        "An unexpected error occurred in the service. Send the request again later; if it keeps failing, report the `instance` of the Problem to support.";
    InvalidTokenRequest = "invalid-token-request", BAD_REQUEST, "The token request is malformed",
        "The endpoints of the token issuer take a form (application/x-www-form-urlencoded), and the client's credentials in one way: in HTTP Basic, or as client_secret or client_assertion in the form. No parameter may come twice; the detail says which is missing or malformed.";
    InvalidClient = "invalid-client", UNAUTHORIZED, "The client could not be authenticated",
        "The client identifier is unknown or its proof is not good; which of the two is not said. Check the credentials, and that they are those of this environment. A client assertion needs iss and sub (both the client identifier), aud (the token issuer's address or the endpoint's), exp (an hour ahead at most) and a jti that was never used before, and the signature of a registered key with that key's algorithm.";
    TooManyAttempts = "too-many-attempts", TOO_MANY_REQUESTS, "Too many attempts to authenticate have failed",
        "From the caller's address too many attempts to authenticate as this client, or as many clients, have failed within five minutes. For the time in the Retry-After header nobody gets in from there, whatever is sent; from other addresses the client does. Check the credentials before trying again.";
    ForeignToken = "foreign-token", BAD_REQUEST, "The token was issued to another application",
        "An application can revoke its own tokens only. A platform-wide one that is registered for account.remove can revoke any.";
    InvalidScope = "invalid-scope", BAD_REQUEST, "A requested scope cannot be granted",
        "One of the requested scopes does not exist, or the application is not registered for it. The whole request fails, so that no client works with fewer rights than it believes to have. Without the scope parameter a token has all scopes of the application.";
    InvalidTarget = "invalid-target", BAD_REQUEST, "The token is asked for another service",
        "A `resource` of the token request (RFC 8707) is none of this service. Name the API's own address for a token that is good everywhere, or the address of its endpoint for agents, `/mcp`, for one that is good there only; /.well-known/oauth-protected-resource lists both. Without the parameter a token is good everywhere.";
    UnsupportedResponseType = "unsupported-response-type", BAD_REQUEST, "User sign-in is not available",
        "Applications get tokens for themselves: with the client_credentials grant, at the token endpoint, with a client identifier and a secret or key. The issuer's metadata name an authorization endpoint because client libraries refuse metadata without one. Configure the library for client credentials, and register an application if there is none.";
    UnsupportedGrantType = "unsupported-grant-type", BAD_REQUEST, "This grant is not supported",
        "The token endpoint supports the client_credentials grant only.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_kind_has_a_page_of_its_own() {
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
