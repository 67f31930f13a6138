//! The caller and its rights, as tools, resources and prompts see them.

use auth::{AuthorizedEntity, Claims, Entities, EntityId, Scope, refusal};
use base::{Time, audit::Notes, trace::Trace};
use gate::Call;
use problem::{Problem, Rule, Violation};
use storage::{IdempotencyKey, IdempotentRequest, Sender};

use crate::selection::Selection;

/// The argument for a call's managing entity.
pub const MANAGING_ENTITY: &str = "managingEntity";

/// The application behind a request, whose token the gate has verified.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The token's claims.
    pub claims: Claims,
    /// The request's identifier.
    pub request_id: String,
    /// When the gate admitted the request.
    pub now: Time,
    /// This call's span of the request's trace.
    pub trace: Trace,
    /// Collects the details of a call for the audit trail.
    pub notes: Notes,
    /// The tools that the client selects.
    pub selection: Selection,
}

impl Caller {
    /// The caller of an admitted request.
    ///
    /// # Errors
    /// 500 if the endpoint admits calls without a token; 400 for headers with an invalid selection of tools.
    pub fn of(call: Call) -> Result<Self, Problem> {
        let selection = Selection::of(call.headers())?;
        let claims = call.claims.ok_or_else(|| Problem::internal("an agent's call has no token"))?;
        Ok(Self { claims, request_id: call.request_id, now: call.now, trace: call.trace, notes: call.notes, selection })
    }

    /// The managing entity that a call names, or the only one that the token covers.
    ///
    /// # Errors
    /// 400 if the token covers several and the call names none; 403 if the token does not cover the named one.
    pub fn entity(&self, named: Option<&str>) -> Result<AuthorizedEntity, Problem> {
        let named = named.map_or_else(|| self.only_entity(), Ok)?;
        if let Ok(entity) = EntityId::parse(named) {
            self.notes.entity(entity.as_str());
        }
        if !self.claims.entities.cover(named) {
            return Err(refusal::entity_not_covered());
        }
        let entity = EntityId::parse(named)
            .map_err(|error| Violation::body(MANAGING_ENTITY, Rule::InvalidFormat, error.to_string()))?;
        self.claims.authorize(entity).ok_or_else(refusal::entity_not_covered)
    }

    /// Whether the token has these scopes. The gate has already checked `mcp.read`.
    pub fn has(&self, scopes: &[Scope]) -> bool {
        scopes.iter().all(|scope| self.claims.scopes.contains(*scope))
    }

    /// An idempotent request of this caller: the tool, and its arguments as JSON.
    ///
    /// # Errors
    /// 400 for a malformed key.
    pub fn once(
        &self,
        entity: &AuthorizedEntity,
        tool: &str,
        key: &str,
        arguments: &[u8],
    ) -> Result<IdempotentRequest, Problem> {
        let key = IdempotencyKey::read([key.as_bytes()]);
        let key = key.map_err(|fault| Violation::body("idempotencyKey", Rule::InvalidFormat, fault))?;
        let key = key.ok_or_else(|| Problem::internal("an idempotency key is missing after its check"))?;
        let sender = Sender { entity: entity.id().as_str(), client: &self.claims.client_id, path: tool };
        Ok(IdempotentRequest::of_request(sender, key, arguments))
    }

    fn only_entity(&self) -> Result<&str, Problem> {
        let mut covered = self.claims.entities.iter();
        match (covered.next(), covered.next()) {
            (Some(only), None) if only != Entities::EVERY => Ok(only),
            _ => {
                let detail = "is missing; the application covers several entities, so each call must name one";
                Err(Violation::body(MANAGING_ENTITY, Rule::Required, detail).into())
            }
        }
    }
}
