//! Changes a webhook. A change that names a version fails if that version is no longer current. A change without a
//! version sets only the members that it names: it undoes no concurrent change and loses no new secret.
//!
//! A mask in a change means the stored value: such a change is built from that value, and tried again if the value has
//! changed. No stored value moves to another server along with the webhook.
//!
//! Changing the signature adds a key pair to the current signing secret, or removes all key pairs. The secrets continue
//! to sign, so that a receiver that has them accepts every delivery before and after.

use std::num::NonZeroU64;

use crate::subscriptions::{
    endpoint::{
        Kept, KeptEndpoint, Part, SealContext,
        key_pair::{SignatureScheme, SigningKeyPair},
        masked::MASK,
        secret::{self, SealedSecret},
    },
    error::WebhookError,
    health::resume::{Pauses, Reset},
    webhook::{
        Delivering, DeliveryOrder, Webhook, WebhookView,
        members::{About, Members},
        revision::{self, EndpointChange, PartChange},
        show::Showing,
        store::SigningWebhook,
    },
};
use auth::{AuthorizedEntity, EntityId};
use base::{SharedClock, SharedRandom, WebhookId};
use outbound::AddressRules;
use problem::{JsonBody, Pointer, Problem, Rule, Violations};
use storage::{Changed, KeyRings, Once, Record, Written, table::Change};

/// How many times a change is tried. A change without a version is lost only if a concurrent change sets `enabled` or
/// `delivery`, or the endpoint or the secrets that it depends on.
const TRIES: u32 = 10;

/// Changes webhooks.
pub struct Changing {
    /// Reads and shows webhooks.
    pub showing: Showing,
    /// Webhooks' pauses, which a new address ends.
    pub pauses: Pauses,
    /// The clock for the change.
    pub clock: SharedClock,
    /// The addresses that endpoints may have.
    pub rules: AddressRules,
    /// Seals endpoints.
    pub rings: KeyRings,
    /// The random source for key pairs, and for the nonces for sealing.
    pub random: SharedRandom,
}

/// A change that a webhook's owner requests.
#[derive(Debug, PartialEq, Eq)]
pub struct WebhookChange {
    members: Members,
    version: Option<u64>,
}

impl Changing {
    /// Changes a webhook once per idempotency key and returns the owner's view of it.
    pub async fn change(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        change: &WebhookChange,
        once: Once<'_>,
    ) -> Result<Changed<WebhookView>, WebhookError> {
        let now = self.clock.now();
        once.change(now, self.change_now(entity, id, change, once), self.showing.one(entity, id, now)).await
    }

    async fn change_now(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        change: &WebhookChange,
        once: Once<'_>,
    ) -> Result<WebhookView, WebhookError> {
        let record = once.record(&(), id, self.clock.now()).await?;
        for _ in 0..TRIES {
            let found = self.showing.webhooks.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
            let read = &found.webhook;
            if change.version.is_some_and(|version| version != read.version) {
                return Err(WebhookError::VersionConflict(read.version));
            }
            if change.members.is_empty() {
                self.showing.webhooks.change_nothing(record).await?;
                return Ok(self.showing.read(entity, read, self.clock.now()).await?);
            }
            if let Written::Done(changed) = self.write(entity, &found, change, record.clone()).await? {
                tracing::info!(webhookId = %id, entity = %entity.id(), version = changed.version, "changed a webhook");
                return Ok(self.showing.read(entity, &changed, self.clock.now()).await?);
            }
        }
        Err(WebhookError::NeverStill)
    }

    /// Writes a change. Returns `Lost` if an attribute that it depends on has changed since it was read.
    async fn write(
        &self,
        entity: &AuthorizedEntity,
        found: &SigningWebhook,
        change: &WebhookChange,
        record: Option<Record>,
    ) -> Result<Written<Webhook>, WebhookError> {
        let read = &found.webhook;
        let members = &change.members;
        let pulled = members.delivery.map_or(read.is_pulled(), |delivery| delivery == Delivering::Pull);
        check_delivery(read, members, pulled)?;
        let leads_elsewhere = members.event_url.as_ref().is_some_and(|url| !read.endpoint.is_same_server(url));
        if leads_elsewhere {
            refuse_kept_values(members, &read.endpoint)?;
        }
        let endpoint = if pulled && !read.is_pulled() {
            // An address and headers are an endpoint's credentials, which no reader of the feed must learn.
            EndpointChange::none()
        } else {
            self.endpoint(read, members).await?
        };
        let enabled = !read.enabled && members.enabled == Some(true);
        let moved = endpoint.url.as_ref().is_some_and(|url| url.differs);
        let now = self.clock.now();
        let of_version = change.version.is_some();
        let change = revision::change(read, members, &endpoint, of_version, now)?;
        let change = match self.secrets(found, members.signature).await? {
            Some(secrets) => revision::with_secrets(change, found, &secrets)?,
            None => change,
        };
        // Past failures must not disable the webhook again at its next failure, and a new address has not failed yet.
        let resets = enabled || moved;
        let paced = revision::changed_limit(read, members).is_some();
        // The feed ends.
        let leaves_feed = read.is_pulled() && (!pulled || members.enabled == Some(false));
        // Deliveries that are held until others are final become due immediately.
        let ends_order = read.is_ordered() && members.order == Some(DeliveryOrder::None);
        let job = match (leaves_feed, revision::ends_pause(read, members)) {
            (true, _) => Some(self.pauses.jobs.release(entity, &read.id, now)?),
            (false, true) => Some(self.pauses.jobs.resumption(entity, &read.id, now, now)?),
            (false, false) => None,
        };
        let in_transaction = if resets || job.is_some() || paced || ends_order {
            let reset = Reset { failures: resets, put_off: paced || ends_order, job, record: record.clone() };
            self.pauses.change_and_reset(entity, &read.id, &change, reset, now).await?
        } else {
            None
        };
        match in_transaction {
            Some(written) => self.changed(entity, &read.id, written).await,
            None => self.write_alone(entity, &read.id, change, (record, of_version)).await,
        }
    }

    /// The change to the endpoint. A concurrent change may lead to another server, so new headers require the address
    /// that was read, and a new address requires the headers that were read.
    async fn endpoint(&self, read: &Webhook, members: &Members) -> Result<EndpointChange, WebhookError> {
        let mut endpoint = EndpointChange {
            url: self.part(read, read.endpoint.url(), members.event_url.as_ref()).await?,
            headers: self.part(read, read.endpoint.headers(), members.headers.as_ref()).await?,
        };
        if members.event_url.is_some() && endpoint.headers.is_none() {
            endpoint.headers = Some(PartChange::unchanged(read.endpoint.headers()));
        }
        if members.headers.is_some() && endpoint.url.is_none() {
            endpoint.url = Some(PartChange::unchanged(read.endpoint.url()));
        }
        Ok(endpoint)
    }

    /// Writes a change that does not affect deliveries.
    async fn write_alone(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        change: Change,
        (record, of_version): (Option<Record>, bool),
    ) -> Result<Written<Webhook>, WebhookError> {
        let webhooks = &self.showing.webhooks;
        let written = if record.is_some() {
            webhooks.change_once(change, record).await?
        } else if of_version {
            // The SDK repeats a call whose response is lost. A transaction has a token, so the repeated call does not
            // look like a concurrent change.
            webhooks.change_in_transaction(change).await?
        } else {
            return Ok(webhooks.change(entity, id, change).await?);
        };
        self.changed(entity, id, written).await
    }

    /// The webhook after a transaction, which returns no items.
    async fn changed(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        written: Written<()>,
    ) -> Result<Written<Webhook>, WebhookError> {
        if !written.is_done() {
            return Ok(Written::Lost(None));
        }
        let found = self.showing.webhooks.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
        Ok(Written::Done(found.webhook))
    }

    /// The signing secrets with the key pairs of this scheme; `None` if they do not change.
    async fn secrets(
        &self,
        found: &SigningWebhook,
        wanted: Option<SignatureScheme>,
    ) -> Result<Option<Vec<SealedSecret>>, WebhookError> {
        let Some(wanted) = wanted.filter(|wanted| *wanted != secret::scheme(&found.secrets)) else { return Ok(None) };
        let mut secrets = found.secrets.clone();
        match wanted {
            SignatureScheme::Hmac => secrets.iter_mut().for_each(|secret| secret.key_pair = None),
            SignatureScheme::Ed25519 => {
                let SealContext { owner, webhook } = found.webhook.seal_context();
                let ring = self.rings.get().await?;
                let pair = SigningKeyPair::new(&*self.random).seal(&ring, &*self.random, owner, webhook);
                // The first secret signs until it is replaced. A previous secret ends soon, and gets no new key.
                secrets.iter_mut().take(1).for_each(|secret| secret.key_pair = Some(pair.clone()));
            }
        }
        Ok(Some(secrets))
    }

    /// The change to a part of the endpoint; `None` if the part does not change.
    async fn part<T: Part>(
        &self,
        read: &Webhook,
        kept: Kept<T>,
        given: Option<&T>,
    ) -> Result<Option<PartChange<T>>, WebhookError> {
        let Some(given) = given else { return Ok(None) };
        let context = read.seal_context();
        let needs_kept = given.has_masks();
        let was = match kept.open(&self.rings, context).await {
            Ok(was) => Some(was),
            Err(error) if needs_kept => return Err(error.into()),
            Err(_) => None, // a part that cannot be opened can still be replaced
        };
        let whole = self.unmask_and_check(given, &was.clone().unwrap_or_default())?;
        if was.as_ref() == Some(&whole) {
            return Ok(None);
        }
        let now_on = Kept::of(&whole, &self.rings, &*self.random, context).await?;
        Ok(Some(PartChange { kept: now_on, differs: true, made_of: needs_kept.then_some(kept) }))
    }

    /// Replaces the masks in a part with the stored values and checks the part.
    fn unmask_and_check<T: Part>(&self, given: &T, kept: &T) -> Result<T, WebhookError> {
        let mut violations = Violations::default();
        let whole = given.clone().unmasked(kept, &mut violations);
        whole.check(&self.rules, &mut violations);
        let violations = violations.into_list();
        if violations.is_empty() { Ok(whole) } else { Err(WebhookError::Invalid(violations)) }
    }
}

/// Refuses an address and request settings for a pull webhook, and a push webhook without an address.
fn check_delivery(read: &Webhook, members: &Members, pulled: bool) -> Result<(), WebhookError> {
    let mut violations = Violations::default();
    if !pulled && read.temporary {
        let detail = "must be `pull`: the webhook is temporary, and exists only while its feed is read";
        violations.add("delivery", Rule::NotAllowed, detail);
    }
    if !pulled && read.is_pulled() && members.event_url.is_none() {
        let detail = "is required: a pull webhook has no address yet";
        violations.add("eventUrl", Rule::Required, detail);
    }
    if pulled && members.event_url.is_some() {
        let detail = "requires `delivery` to be `push`: a pull webhook has no address";
        violations.add("eventUrl", Rule::Inconsistent, detail);
    }
    if pulled {
        let headers = "require `delivery` to be `push`: a pull webhook has no headers";
        members.refuse_settings_of_requests(headers, &mut violations);
    }
    let violations = violations.into_list();
    if violations.is_empty() { Ok(()) } else { Err(WebhookError::Invalid(violations)) }
}

/// Refuses a change to another server that would send stored values there. They are the original server's credentials,
/// and a token that may change a webhook must not reveal them.
fn refuse_kept_values(members: &Members, kept: &KeptEndpoint) -> Result<(), WebhookError> {
    const GIVE: &str = "must be given in full, not as `***`: eventUrl names another server, which must not get the \
                        stored value";
    let mut violations = Violations::default();
    if members.event_url.as_ref().is_some_and(Part::has_masks) {
        violations.add(
            "eventUrl",
            Rule::NotAllowed,
            "names another server, which must not get the stored values: replace each `***` in its query with a value",
        );
    }
    match &members.headers {
        Some(headers) => {
            for (name, _) in headers.iter().filter(|(_, value)| *value == MASK) {
                violations.add(Pointer::from("headers").member(name), Rule::NotAllowed, GIVE);
            }
        }
        None => {
            let names: Vec<_> = kept.shown_headers().into_keys().collect();
            if !names.is_empty() {
                violations.add(
                    "headers",
                    Rule::Required,
                    format!(
                        "must be given again with their values ({}), or as {{}} for none: eventUrl names another server, \
                         which must not get the stored values",
                        names.join(", ")
                    ),
                );
            }
        }
    }
    let violations = violations.into_list();
    if violations.is_empty() { Ok(()) } else { Err(WebhookError::Invalid(violations)) }
}

impl WebhookChange {
    /// Reads and checks a request's body.
    pub fn read(body: &[u8], entity: &EntityId, rules: &AddressRules) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let members = Members::take(&mut body, About::Existing, entity, rules);
        let version = body.optional::<NonZeroU64>("version", "an integer of at least 1: the version you fetched");
        body.finish()?;
        Ok(Self { members, version: version.map(NonZeroU64::get) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::Violation;

    fn read(body: &str) -> Result<WebhookChange, Problem> {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        WebhookChange::read(body.as_bytes(), &entity, &AddressRules::default())
    }

    /// The fields whose stored values a change would send to a server other than that of
    /// `https://hotel.example.com/hook?key=***`.
    fn refused(body: &str, headers: &str) -> Vec<String> {
        let kept = format!(r#"{{"eventUrl":"https://hotel.example.com/hook?key=***","headers":{headers}}}"#);
        let kept: KeptEndpoint = serde_json::from_str(&kept).expect("an endpoint");
        let members = read(body).expect(body).members;
        if members.event_url.as_ref().is_none_or(|url| kept.is_same_server(url)) {
            return Vec::new();
        }
        match refuse_kept_values(&members, &kept) {
            Ok(()) => Vec::new(),
            Err(WebhookError::Invalid(violations)) => violations.iter().map(Violation::name).collect(),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn kept_values_stay_with_their_server() {
        const KEPT: &str = r#"{"X-Key":"***"}"#;
        for (body, headers, fields) in [
            // The same server.
            (r#"{"eventUrl":"https://hotel.example.com/other?key=***"}"#, KEPT, vec![]),
            (r#"{"eventUrl":"https://HOTEL.example.com:443/other?key=***","headers":{"x-key":"***"}}"#, KEPT, vec![]),
            (r#"{"headers":{"X-Key":"***"}}"#, KEPT, vec![]),
            // Another host or port.
            (r#"{"eventUrl":"https://other.example.com/hook?key=***"}"#, KEPT, vec!["eventUrl", "headers"]),
            (r#"{"eventUrl":"https://hotel.example.com.example.org/hook"}"#, KEPT, vec!["headers"]),
            (r#"{"eventUrl":"https://hotel.example.com:8443/hook"}"#, KEPT, vec!["headers"]),
            (r#"{"eventUrl":"https://hotel.example.com./hook"}"#, KEPT, vec!["headers"]),
            (r#"{"eventUrl":"https://other.example.com/?key=%2A%2A%2A"}"#, "{}", vec!["eventUrl"]),
            (
                r#"{"eventUrl":"https://other.example.com/","headers":{"x-key":"***","X-New":"n"}}"#,
                KEPT,
                vec!["headers.x-key"],
            ),
            // All values are given again or omitted.
            (r#"{"eventUrl":"https://other.example.com/?key=new","headers":{"X-Key":"new"}}"#, KEPT, vec![]),
            (r#"{"eventUrl":"https://other.example.com/","headers":{}}"#, KEPT, vec![]),
            (r#"{"eventUrl":"https://other.example.com/"}"#, "{}", vec![]),
        ] {
            assert_eq!(refused(body, headers), fields, "{body}");
        }
    }

    #[test]
    fn a_version_alone_changes_nothing() {
        let request = read(r#"{"version":3}"#).expect("good");
        assert_eq!(request, WebhookChange { members: Members::default(), version: Some(3) });
        assert_eq!(read("{}").expect("good").version, None);
    }

    #[test]
    fn a_version_is_a_whole_number_from_one() {
        for bad in ["0", "-1", "1.5", "\"1\"", "null", "[1]", "true", "18446744073709551616"] {
            let problem = read(&format!(r#"{{"version":{bad}}}"#)).expect_err(bad);
            assert_eq!(problem.violations()[0].name(), "version", "{bad}");
        }
    }
}
