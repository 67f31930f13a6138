//! An endpoint's declaration: its access, and the formats of its requests and errors.

use std::{marker::PhantomData, time::Duration};

use auth::{Resource, Scope};
use base::audit::Action;

use crate::{Call, EntityCall};

/// The default deadline of a request: below the functions' timeout of 15 s, since Lambda's response to a timeout is not
/// a Problem.
const DEADLINE: Duration = Duration::from_secs(12);

/// An endpoint. Its handler gets a `C`: an [`EntityCall`] if the path names a managing entity, else a [`Call`].
#[derive(Debug)]
pub struct Endpoint<C = Call> {
    declaration: Declaration,
    handler_gets: PhantomData<fn(C)>,
}

/// An endpoint's declaration. The gate refuses requests that the declaration does not allow.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// The access that the endpoint requires.
    pub access: Access,
    /// The resource that a token must be valid for.
    pub resource: Resource,
    /// Whether scripts of other sites are refused, based on the browser's `Origin` header.
    pub own_origin: bool,
    /// Whether the token's application must have the right to publish events.
    pub publishes: bool,
    /// Whether the endpoint creates a credential, a secret or a link. These outlive the token, so even a token revoked
    /// a moment ago must be refused.
    pub gives_credentials: bool,
    /// Whether the media type of a body must be JSON.
    pub takes_json: bool,
    /// The format of its errors.
    pub errors: ErrorStyle,
    /// Whether people open the endpoint in a browser, so that its errors are pages for clients that prefer pages.
    pub opened_by_people: bool,
    /// Whether scripts of every origin may read the endpoint's responses.
    pub any_origin: bool,
    /// A request's time limit. The function's timeout is longer.
    pub deadline: Duration,
    /// The action that its requests have in the audit trail, if the endpoint is audited.
    pub audited: Option<Action>,
}

/// The access that an endpoint requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Needs no token. The request's version is not checked.
    Public,
    /// Needs no token, but a token in the request must be valid and have this scope. The version is not checked.
    OptionalToken(Scope),
    /// Needs a valid token with any scopes.
    AnyScope,
    /// Needs a valid token with this scope.
    Scope(Scope),
}

/// The format of an endpoint's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorStyle {
    /// `application/problem+json`.
    Problem,
    /// RFC 6749 §5.2, with the Problem's members added.
    OAuth,
    /// Problems, except that a 500 is the empty object.
    EmptyInternalError,
    /// Problems from the gate, and JSON-RPC errors from the handler.
    JsonRpc,
}

impl Access {
    /// The scope that a token must have.
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::Scope(scope) | Self::OptionalToken(scope) => Some(scope),
            Self::Public | Self::AnyScope => None,
        }
    }

    /// Whether a request without a token is refused.
    pub const fn needs_token(self) -> bool {
        matches!(self, Self::Scope(_) | Self::AnyScope)
    }

    /// Whether the endpoint verifies tokens.
    pub const fn reads_tokens(self) -> bool {
        !matches!(self, Self::Public)
    }
}

impl Endpoint<EntityCall> {
    /// An endpoint that needs a token with this scope, for the path's managing entity.
    pub const fn needs(scope: Scope) -> Self {
        Self::open_to(Access::Scope(scope))
    }
}

impl Endpoint<Call> {
    /// An endpoint that needs a token with any scopes. Its path names no managing entity.
    pub const fn any_scope() -> Self {
        Self::open_to(Access::AnyScope)
    }

    /// An endpoint that needs a token with this scope. Its path names no managing entity.
    pub const fn needs_without_entity(scope: Scope) -> Self {
        Self::open_to(Access::Scope(scope))
    }

    /// A public endpoint.
    pub const fn public() -> Self {
        Self::open_to(Access::Public)
    }

    /// A public endpoint that verifies a token if the request has one. The handler checks which managing entities the
    /// token covers, since a public path names none.
    pub const fn optional_token(scope: Scope) -> Self {
        Self::open_to(Access::OptionalToken(scope))
    }
}

impl<C> Endpoint<C> {
    const fn open_to(access: Access) -> Self {
        let errors = ErrorStyle::Problem;
        Self::declaring(Declaration {
            access,
            resource: Resource::Api,
            own_origin: false,
            publishes: false,
            gives_credentials: false,
            takes_json: false,
            errors,
            opened_by_people: false,
            any_origin: false,
            deadline: DEADLINE,
            audited: None,
        })
    }

    const fn declaring(declaration: Declaration) -> Self {
        Self { declaration, handler_gets: PhantomData }
    }

    /// The declaration, without the type of the handler's call.
    pub const fn declaration(self) -> Declaration {
        self.declaration
    }

    /// Requires a body in JSON.
    ///
    /// # Panics
    /// If no token is required, since the media type is checked after the token. Endpoints are constants, so this is a
    /// compile-time error.
    pub const fn taking_json(self) -> Self {
        assert!(self.declaration.access.needs_token(), "only an endpoint that requires a token checks the media type");
        Self::declaring(Declaration { takes_json: true, ..self.declaration })
    }

    /// Requires an application with the right to publish events.
    ///
    /// # Panics
    /// If no token is required, since only its claims contain the right.
    pub const fn for_publishers(self) -> Self {
        assert!(self.declaration.access.needs_token(), "only a token says whether its application may publish");
        Self::declaring(Declaration { publishes: true, ..self.declaration })
    }

    /// Declares that the endpoint creates a credential, a secret or a link. These outlive the token, so the revocations
    /// are read for each request.
    ///
    /// # Panics
    /// If no token is required.
    pub const fn giving_credentials(self) -> Self {
        assert!(self.declaration.access.needs_token(), "only a token can be revoked");
        Self::declaring(Declaration { gives_credentials: true, ..self.declaration })
    }

    /// Requires tokens that are valid at this resource.
    ///
    /// # Panics
    /// If the endpoint verifies no tokens.
    pub const fn at(self, resource: Resource) -> Self {
        assert!(self.declaration.access.reads_tokens(), "only a token is valid at a resource");
        Self::declaring(Declaration { resource, ..self.declaration })
    }

    /// Refuses scripts of other sites.
    pub const fn for_own_origin(self) -> Self {
        Self::declaring(Declaration { own_origin: true, ..self.declaration })
    }

    /// Declares JSON-RPC errors in addition to Problems.
    pub const fn with_json_rpc_errors(self) -> Self {
        Self::declaring(Declaration { errors: ErrorStyle::JsonRpc, ..self.declaration })
    }

    /// Formats errors for OAuth 2 clients.
    pub const fn with_oauth_errors(self) -> Self {
        Self::declaring(Declaration { errors: ErrorStyle::OAuth, ..self.declaration })
    }

    /// Uses `{}` as the body of a 500.
    pub const fn with_empty_internal_errors(self) -> Self {
        Self::declaring(Declaration { errors: ErrorStyle::EmptyInternalError, ..self.declaration })
    }

    /// Sends errors as pages to clients that prefer pages to JSON.
    pub const fn opened_by_people(self) -> Self {
        Self::declaring(Declaration { opened_by_people: true, ..self.declaration })
    }

    /// Allows scripts of every origin to read responses.
    ///
    /// # Panics
    /// If the endpoint is not public, since its responses are only for the token's bearer.
    pub const fn readable_from_any_origin(self) -> Self {
        assert!(!self.declaration.access.reads_tokens(), "only a public endpoint may be read from every origin");
        Self::declaring(Declaration { any_origin: true, ..self.declaration })
    }

    /// Sets the deadline, in seconds, for an endpoint that waits for another server or for deliveries.
    pub const fn with_deadline(self, seconds: u64) -> Self {
        Self::declaring(Declaration { deadline: Duration::from_secs(seconds), ..self.declaration })
    }

    /// Writes a line in the audit trail for every call, regardless of its outcome.
    pub const fn audited(self, action: Action) -> Self {
        Self::declaring(Declaration { audited: Some(action), ..self.declaration })
    }
}
