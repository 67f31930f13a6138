//! The declaration of an endpoint: who may call it, and in which form it takes requests and gives errors.

use std::{marker::PhantomData, time::Duration};

use auth::{Resource, Scope};
use base::audit::Action;

use crate::{Call, EntityCall};

/// The longest that a request may take where its endpoint says nothing else: below the functions' own limit of 15 s, after
/// which Lambda would answer in the function's place, and not with a Problem.
const DEADLINE: Duration = Duration::from_secs(12);

/// An endpoint. Its handler gets a `C`: an [`EntityCall`] where the path names a managing entity, else a [`Call`].
#[derive(Debug)]
pub struct Endpoint<C = Call> {
    declaration: Declaration,
    handler_gets: PhantomData<fn(C)>,
}

/// The declaration of an endpoint. A request that it does not allow is refused.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Who may call it.
    pub access: Access,
    /// What a token must be good at.
    pub resource: Resource,
    /// Whether scripts of other sites are refused, by the origin that a browser names.
    pub own_origin: bool,
    /// Whether the token's application must have the right to publish events.
    pub publishes: bool,
    /// Whether it makes a credential, a secret or a link, which outlives the token. A token that is revoked at this moment
    /// is refused.
    pub gives_credentials: bool,
    /// Whether a body must be JSON by its media type.
    pub takes_json: bool,
    /// The form of its errors.
    pub errors: ErrorStyle,
    /// Whether people open it with a browser. Its errors are pages then, for clients that prefer these.
    pub opened_by_people: bool,
    /// Whether scripts of every origin may read its answers.
    pub any_origin: bool,
    /// How long a request may take. The function's own limit is longer.
    pub deadline: Duration,
    /// The name of its requests in the audit trail, if it is audited.
    pub audited: Option<Action>,
}

/// Who may call an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone, without a token; the version of the request is not checked either.
    Public,
    /// Anyone; but a token that comes with the request must be valid and have this scope.
    OptionalToken(Scope),
    /// The bearer of a valid token, with any scopes.
    AnyScope,
    /// The bearer of a valid token with this scope.
    Scope(Scope),
}

/// How an endpoint words its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorStyle {
    /// `application/problem+json`.
    Problem,
    /// RFC 6749 §5.2, with the Problem's members beside it.
    OAuth,
    /// Problems, but for a 500, which is the empty object.
    EmptyInternalError,
    /// Problems, and beside them the errors of JSON-RPC, with which the handler answers messages.
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

    /// Whether the endpoint verifies tokens at all.
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
    /// An endpoint that needs a token, but no scope. Its path names no managing entity.
    pub const fn any_scope() -> Self {
        Self::open_to(Access::AnyScope)
    }

    /// An endpoint that needs a token with this scope. Its path names no managing entity.
    pub const fn needs_for_all(scope: Scope) -> Self {
        Self::open_to(Access::Scope(scope))
    }

    /// An endpoint for everybody.
    pub const fn public() -> Self {
        Self::open_to(Access::Public)
    }

    /// An endpoint for everybody, that verifies a token if one comes. The handler checks which managing entities the token
    /// covers, since a public path names none.
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

    /// Its declaration, the same for both kinds of handler.
    pub const fn declaration(self) -> Declaration {
        self.declaration
    }

    /// The same with a body in JSON.
    ///
    /// # Panics
    /// When a token is not required: the media type is checked after the token. Endpoints are constants, so that this
    /// is an error of the compiler.
    pub const fn taking_json(self) -> Self {
        assert!(self.declaration.access.needs_token(), "only an endpoint that requires a token checks the media type");
        Self::declaring(Declaration { takes_json: true, ..self.declaration })
    }

    /// The same for applications with the right to publish events.
    ///
    /// # Panics
    /// When a token is not required, which says whether its application has the right.
    pub const fn for_publishers(self) -> Self {
        assert!(self.declaration.access.needs_token(), "only a token says whether its application may publish");
        Self::declaring(Declaration { publishes: true, ..self.declaration })
    }

    /// The endpoint as one that makes a credential, a secret or a link, which outlives the token. So the revocations are read
    /// consistently, which costs a read.
    ///
    /// # Panics
    /// When a token is not required.
    pub const fn giving_credentials(self) -> Self {
        assert!(self.declaration.access.needs_token(), "only a token can be revoked");
        Self::declaring(Declaration { gives_credentials: true, ..self.declaration })
    }

    /// The same for tokens that are good at this resource.
    ///
    /// # Panics
    /// When no token is read. Endpoints are constants, so that this is an error of the compiler.
    pub const fn at(self, resource: Resource) -> Self {
        assert!(self.declaration.access.reads_tokens(), "only a token is good at a resource");
        Self::declaring(Declaration { resource, ..self.declaration })
    }

    /// The same without scripts of other sites.
    pub const fn for_own_origin(self) -> Self {
        Self::declaring(Declaration { own_origin: true, ..self.declaration })
    }

    /// The same with errors of JSON-RPC beside Problems.
    pub const fn with_json_rpc_errors(self) -> Self {
        Self::declaring(Declaration { errors: ErrorStyle::JsonRpc, ..self.declaration })
    }

    /// The same with errors as an OAuth 2 client expects them.
    pub const fn with_oauth_errors(self) -> Self {
        Self::declaring(Declaration { errors: ErrorStyle::OAuth, ..self.declaration })
    }

    /// The same with `{}` as the body of a 500.
    pub const fn with_empty_internal_errors(self) -> Self {
        Self::declaring(Declaration { errors: ErrorStyle::EmptyInternalError, ..self.declaration })
    }

    /// The same with errors as pages, where the client prefers these to JSON.
    pub const fn opened_by_people(self) -> Self {
        Self::declaring(Declaration { opened_by_people: true, ..self.declaration })
    }

    /// The same for scripts of every origin.
    ///
    /// # Panics
    /// When the endpoint is not public: its answers are for the bearer of the token. Endpoints are constants, so that
    /// this is an error of the compiler.
    pub const fn readable_from_any_origin(self) -> Self {
        assert!(!self.declaration.access.reads_tokens(), "only what is public may be read from every origin");
        Self::declaring(Declaration { any_origin: true, ..self.declaration })
    }

    /// The same with a deadline of so many seconds, for an endpoint that waits for another server.
    pub const fn with_deadline(self, seconds: u64) -> Self {
        Self::declaring(Declaration { deadline: Duration::from_secs(seconds), ..self.declaration })
    }

    /// The same with a line in the audit trail for every call, however it ends.
    pub const fn audited(self, action: Action) -> Self {
        Self::declaring(Declaration { audited: Some(action), ..self.declaration })
    }
}
