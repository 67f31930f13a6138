//! The tenants, which create applications, and the clients, which get, present and revoke tokens.

use std::time::Duration;

use auth::{Resource, Scopes, TokenFault, Unverified};
use base::{audit::Notes, pause};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use fastrand::Rng;
use futures::future::join_all;
use issuer::{
    applications::{
        caller::Caller,
        credential_removal::{CredentialName, CredentialRemoval},
        new_application::NewApplication,
    },
    oauth::{
        client_authentication::RequestContext, client_credentials::TokenRequest, form::Posted, token_form::TokenForm,
    },
};
use problem::{Problem, overlap::overlap};
use serde_json::{Value, json};
use storage::Once;

use super::{
    Action,
    records::{Ending, Ends, Secret, Token, Verdict, Verification},
};
use crate::{
    bundle::{entity, entity_id},
    plan::Step,
    records::Answer,
    sandbox::Function,
    tenants::{Tenants, done, once},
};

fn token(tenant: usize, text: &str) -> Option<Token> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(text.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(Token {
        tenant,
        client: claims["client_id"].as_str()?.to_owned(),
        credential: claims["credential_id"].as_str()?.to_owned(),
        id: claims["jti"].as_str()?.to_owned(),
        expires: claims["exp"].as_u64()?,
        text: text.to_owned(),
    })
}

fn posted(body: &str) -> Posted<'_> {
    Posted {
        content_type: "application/x-www-form-urlencoded",
        encoded: false,
        authorization: Vec::new(),
        body: body.as_bytes(),
    }
}

fn notes() -> Notes {
    Notes::of_request("simulation", None)
}

impl Tenants {
    /// Performs a step about tokens.
    pub async fn act_on_tokens(&self, step: Step, action: Action) {
        let world = &self.cloud.world;
        let rng = &mut world.draws.about(&("token", step.number));
        match action {
            Action::Create(tenant, key) => self.create_application(step, tenant, key, rng).await,
            Action::AddSecret(tenant) => self.add_secret(step, tenant, rng).await,
            Action::GetToken(tenant) => self.get_token(step, tenant, rng).await,
            Action::Verify(tenant, sandboxes) => self.verify(tenant, sandboxes, rng).await,
            Action::Revoke(tenant) => self.revoke(step, tenant, rng).await,
            Action::RemoveSecret(tenant) => {
                let Some(secret) = self.records().oauth.secret_of(tenant, rng) else { return };
                let Secret { client, id, .. } = secret;
                let ends = Ends::Secret(client.clone(), id.clone());
                self.end(step, ends, Function::ManageApplications, move |bundle| {
                    let (client, id) = (client.clone(), id.clone());
                    async move {
                        let credential = CredentialName::Secret(&id);
                        let caller = Caller::of_operator();
                        let now = bundle.clock().now();
                        let applications = bundle.applications();
                        let notes = notes();
                        let removal = CredentialRemoval { credential, confirmed: true, once: Once::NO_KEY };
                        let removed = applications.remove_credential(&caller, &client, removal, &notes, now);
                        removed.await.map(|_| Value::Null).map_err(Problem::from)
                    }
                })
                .await;
            }
            Action::RemoveApplication(tenant) => {
                let Some(secret) = self.records().oauth.secret_of(tenant, rng) else { return };
                let client = secret.client;
                self.end(step, Ends::Application(client.clone()), Function::ManageApplications, move |bundle| {
                    let client = client.clone();
                    async move {
                        let now = bundle.clock().now();
                        let applications = bundle.applications();
                        let caller = Caller::of_operator();
                        let removed = applications.remove(&caller, &client, true, None, &notes(), now).await;
                        removed.map(|_| Value::Null).map_err(Problem::from)
                    }
                })
                .await;
            }
            Action::Throttle(time) => {
                let now = world.clock.millis();
                let until = now + u64::try_from(time.as_millis()).unwrap_or_default();
                let mut state = world.state();
                state.throttles.push(("REVOKED".to_owned(), now, until));
                state.throttled.insert("REVOKED".to_owned(), until);
            }
        }
    }

    /// Sends a request that ends tokens, and records when it was acknowledged.
    async fn end<W>(
        &self,
        step: Step,
        what: Ends,
        function: Function,
        work: impl Fn(std::sync::Arc<crate::bundle::Bundle>) -> W + Clone + Send + 'static,
    ) where
        W: Future<Output = Result<Value, Problem>> + Send + 'static,
    {
        let began = self.cloud.world.clock.millis();
        let number = {
            let mut records = self.records();
            records.oauth.endings.push(Ending { what, began, acknowledged: None });
            records.oauth.endings.len() - 1
        };
        let mut rng = self.cloud.world.draws.about(&("end", step.number));
        let token = self.records().oauth.tokens_that_end(number, &mut rng);
        let ended = self.request(step, None, None, function, work);
        // In the meantime and immediately afterwards, functions that create credentials verify one of the tokens.
        let around = rng.bool().then_some(token).flatten();
        let meanwhile = async {
            if let Some(token) = around {
                pause(Duration::from_millis(rng.u64(0..40))).await;
                self.verify_token(token, true, 2).await;
            }
        };
        let (answer, ()) = tokio::join!(ended, meanwhile);
        // A credential that existed and is no longer found was ended either by an earlier try or by another request.
        if matches!(answer, Some(Answer::Done(_) | Answer::Refused(404))) {
            let now = self.cloud.world.clock.millis();
            self.records().oauth.endings[number].acknowledged = Some(now);
            if let Some(token) = around {
                self.verify_token(token, true, 2).await;
            }
        }
    }

    async fn create_application(&self, step: Step, tenant: usize, key: Option<u8>, rng: &mut Rng) {
        let name = key.map_or(format!("Application of step {}", step.number), |key| format!("Application {key}"));
        let body = json!({ "name": name, "scopes": ["account.read"] }).to_string();
        let key = key.map(|key| format!("application-{key}"));
        let again = key.clone();
        // The request comes from the operator, or from a client with a token.
        let by = if rng.bool() { self.records().oauth.token_of(tenant, rng) } else { None };
        let token = by.map(|by| self.records().oauth.tokens[by].text.clone());
        let began = self.cloud.world.clock.millis();
        let answer = self
            .request(step, None, key.clone(), Function::ManageApplications, move |bundle| {
                let (body, key, token) = (body.clone(), again.clone(), token.clone());
                async move {
                    let claims = match &token {
                        None => None,
                        Some(token) => {
                            let verifier = bundle.verifier().await;
                            Some(verifier.verify_with_fresh_revocations(token, Resource::Api).await?)
                        }
                    };
                    let entity = entity(tenant);
                    let caller = match &claims {
                        Some(claims) => Caller::by_token(&entity, claims),
                        None => Caller::of_operator(),
                    };
                    let now = bundle.clock().now();
                    let new = NewApplication::read(body.as_bytes(), &entity_id(tenant), Scopes::ALL, now)?;
                    let once = key.map(|key| once(tenant, "application", &key, body.as_bytes()));
                    let registration = bundle.applications_registration().await;
                    done(registration.create_once(&caller, new, once.as_ref(), &notes(), now).await)
                }
            })
            .await;
        let answered = self.cloud.world.clock.millis();
        let mut records = self.records();
        let tries = records.requests.iter().rfind(|request| request.step == step).map_or(0, |made| made.tries);
        let records = &mut records.oauth;
        let made = records.made.entry((tenant, name)).or_default();
        *made = if key.is_some() { 1 } else { tries };
        let Some(Answer::Done(created)) = answer else { return };
        if let Some(token) = by {
            let verdict = Verdict::Valid;
            records.verifications.push(Verification { token, fresh: true, place: None, began, answered, verdict });
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let [client, secret, id] =
            [&created["clientId"], &created["clientSecret"], &created["secrets"][0]["id"]].map(text);
        if !records.secrets.iter().any(|known| known.id == id) {
            records.secrets.push(Secret { tenant, client, id, secret });
        }
        if let Some(key) = key {
            let answers = records.answers.entry((tenant, "application".to_owned(), key)).or_default();
            answers.insert(created.to_string());
        }
    }

    async fn add_secret(&self, step: Step, tenant: usize, rng: &mut Rng) {
        let Some(Secret { client, .. }) = self.records().oauth.secret_of(tenant, rng) else { return };
        let body = json!({ "overlapSeconds": rng.u32(0..1_200) }).to_string();
        let key = format!("step-{}", step.number);
        let path = format!("application/{client}/secret");
        let place = path.clone();
        let application = client.clone();
        let answer = self
            .request(step, None, Some(key.clone()), Function::ManageApplications, move |bundle| {
                let (body, key, path, client) = (body.clone(), key.clone(), path.clone(), application.clone());
                async move {
                    let once = once(tenant, &path, &key, body.as_bytes());
                    let overlap = overlap(body.as_bytes())?;
                    let caller = Caller::of_operator();
                    let now = bundle.clock().now();
                    let registration = bundle.applications_registration().await;
                    let notes = notes();
                    let added = registration.add_secret_once(&caller, &client, overlap, Some(&once), &notes, now);
                    done(added.await)
                }
            })
            .await;
        let Some(Answer::Done(added)) = answer else { return };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, secret) = (text(&added["secretId"]), text(&added["clientSecret"]));
        let mut records = self.records();
        records.oauth.secrets.push(Secret { tenant, client, id, secret });
        let answers = records.oauth.answers.entry((tenant, place, format!("step-{}", step.number))).or_default();
        answers.insert(added.to_string());
    }

    async fn get_token(&self, step: Step, tenant: usize, rng: &mut Rng) {
        let Some(Secret { client, secret, .. }) = self.records().oauth.secret_of(tenant, rng) else { return };
        let form = format!("grant_type=client_credentials&client_id={client}&client_secret={secret}");
        let answer = self
            .request(step, None, None, Function::GetToken, move |bundle| {
                let form = form.clone();
                async move {
                    let wanted = TokenRequest::read(&posted(&form))?;
                    let notes = notes();
                    let context =
                        RequestContext { id: "simulation", path: "/oauth2/token", source: None, notes: &notes };
                    let now = bundle.clock().now();
                    done(bundle.grant().await.grant(&wanted, &context, now).await)
                }
            })
            .await;
        if let Some(Answer::Done(issued)) = answer {
            let token = issued["access_token"].as_str().and_then(|text| token(tenant, text));
            self.records().oauth.tokens.extend(token);
        }
    }

    async fn revoke(&self, step: Step, tenant: usize, rng: &mut Rng) {
        let Some(number) = self.records().oauth.token_of(tenant, rng) else { return };
        let token = self.records().oauth.tokens[number].clone();
        let secret = {
            let records = self.records();
            let of_client: Vec<_> =
                records.oauth.secrets.iter().filter(|secret| secret.client == token.client).collect();
            rng.choice(of_client).map(|secret| secret.secret.clone())
        };
        let Some(secret) = secret else { return };
        let form = format!("token={}&client_id={}&client_secret={secret}", token.text, token.client);
        self.end(step, Ends::Token(token.id), Function::RevokeToken, move |bundle| {
            let form = form.clone();
            async move {
                let wanted = TokenForm::read(&posted(&form), "revoke")?;
                let notes = notes();
                let context = RequestContext { id: "simulation", path: "/oauth2/revoke", source: None, notes: &notes };
                let now = bundle.clock().now();
                let revoked = bundle.token_revocation().await.revoke(&wanted, &context, now).await;
                revoked.map(|()| Value::Null).map_err(Problem::from)
            }
        })
        .await;
    }

    /// Functions verify a token in several sandboxes concurrently.
    async fn verify(&self, tenant: usize, sandboxes: u8, rng: &mut Rng) {
        let Some(number) = self.records().oauth.token_of(tenant, rng) else { return };
        self.verify_token(number, rng.u8(0..4) == 0, sandboxes).await;
    }

    async fn verify_token(&self, number: usize, fresh: bool, sandboxes: u8) {
        let text = self.records().oauth.tokens[number].text.clone();
        let function = if fresh { Function::ManageApplications } else { Function::ListConnections };
        let verifications = (0..sandboxes).map(|_| async {
            let text = text.clone();
            let began = self.cloud.world.clock.millis();
            let said = self
                .cloud
                .invoke(function, move |bundle| async move {
                    let verifier = bundle.verifier().await;
                    let verified = match fresh {
                        true => verifier.verify_with_fresh_revocations(&text, Resource::Api).await,
                        false => verifier.verify(&text, Resource::Api).await,
                    };
                    let verdict = match verified {
                        Ok(_) => Verdict::Valid,
                        Err(Unverified::Fault(TokenFault::Revoked)) => Verdict::Refused("revoked".to_owned()),
                        Err(Unverified::Fault(fault)) => Verdict::Refused(fault.to_string()),
                        Err(Unverified::Table(_)) => Verdict::Unavailable,
                    };
                    (verdict, bundle.place())
                })
                .await;
            let Some((verdict, place)) = said else { return };
            let answered = self.cloud.world.clock.millis();
            self.cloud.world.note(|| format!("{} {place:?} says of token {number}: {verdict:?}", function.name()));
            let place = Some(place);
            let made = Verification { token: number, fresh, place, began, answered, verdict };
            self.records().oauth.verifications.push(made);
        });
        join_all(verifications).await;
    }
}
