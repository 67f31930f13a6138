#![doc = include_str!("../README.md")]

use function::{Service, idempotent_request};
use gate::{EntityCall, Reply};
use issuer::{
    applications::{
        ApplicationError, Applications,
        caller::{Caller, confirmed},
        credential_removal::{CredentialName, CredentialRemoval},
        register::Registration,
    },
    oauth::pepper::{Pepper, PepperSource},
};
use problem::{Problem, Removed};
use storage::{Allowances, IdempotencyStore, KeyRings, Once, SecretSettings};

/// Registers applications and secrets for this function.
pub async fn registration(service: &Service, secrets: SecretSettings) -> Registration {
    let secrets = service.secrets(secrets);
    let rings = KeyRings::new(secrets.clone(), service.clock()); // not warm: only stored responses are sealed
    Registration {
        applications: Applications::new(service.table()),
        allowances: Allowances::new(service.table()),
        answers: IdempotencyStore::sealed(service.table(), rings, service.random()),
        pepper: Pepper::warm(PepperSource(secrets), service.clock()).await,
        random: service.random(),
    }
}

/// The caller: the managing entity with its token.
pub fn caller(call: &EntityCall) -> Result<Caller<'_>, Problem> {
    let token = call.claims.as_ref();
    let token =
        token.ok_or_else(|| Problem::internal("an endpoint for applications accepted a call without a token"))?;
    Ok(Caller::by_token(&call.entity, token))
}

/// The application's identifier in the path.
pub fn client_id(call: &EntityCall) -> &str {
    call.path("clientId")
}

/// The applications that a function changes or removes, and the responses to requests with an idempotency key.
pub struct Managing {
    /// The applications.
    pub applications: Applications,
    /// The responses, which show no secret.
    pub answers: IdempotencyStore,
}

impl Managing {
    /// This function's applications.
    pub fn of(service: &Service) -> Self {
        Self { applications: Applications::new(service.table()), answers: IdempotencyStore::new(service.table()) }
    }
}

/// Removes a secret or a key, and replies with the effects.
pub async fn remove_credential(
    Managing { applications, answers }: &Managing,
    call: &EntityCall,
    credential: CredentialName<'_>,
) -> Result<Reply, Problem> {
    let confirmed = confirmed(call.read_query())?;
    let caller = caller(call)?;
    let request = idempotent_request(call)?;
    let once = Once::of(answers, request.as_ref());
    let removal = CredentialRemoval { credential, confirmed, once };
    let id = client_id(call);
    let name = credential.as_str();
    let work = async {
        let removed = applications.remove_credential(&caller, id, removal, &call.notes, call.now).await?;
        Ok::<_, ApplicationError>(Removed::new(name, removed.message()))
    };
    let answered = once.carry_out(call.now, work).await?;
    // A repetition is audited as well, but skips the work that notes the subject.
    call.notes.subject(&format!("{id}/{name}"));
    Ok(Reply::ok(&answered)?.replayed(answered.is_repeated()))
}
