//! Links in the table. A link and its session are one item, so that every step is one conditional write.
//!
//! | item | pk / sk |
//! |---|---|
//! | a link, and its session once it is opened | `PANEL#{entity}` / `{link}` |

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    link::{PanelGrant, PanelLink, TOKEN_LIFETIME},
    session::PanelSession,
};
use auth::{EntityId, revocations};
use base::{PanelLinkId, Time};
use storage::table::{
    Change, Condition, Delete, Key, PageEnd, Put, Query, Table, TableError, Transaction, Value, Written, absent,
    at_most, exists, is, more,
};
use storage::{IdempotencyError, Record};

/// How long an item is kept after its link has ended: people who open the link too late should learn why.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// How much longer tokens stay revoked, to allow for clock skew and for tokens that were being issued when their
/// session ended.
const BEING_ISSUED: Duration = Duration::from_secs(5 * 60);

/// The links in the table.
#[derive(Debug, Clone)]
pub(super) struct LinkStore {
    table: Table,
}

/// The item in the table. Its key contains the entity and the link.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LinkItem {
    pk: String,
    sk: PanelLinkId,
    #[serde(flatten)]
    grant: PanelGrant,
    code_hash: String,
    expires_date: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<PanelSession>,
    expires_at: i64,
}

impl LinkItem {
    fn of(link: &PanelLink) -> Self {
        let PanelLink { entity, id, grant, code_hash, expires_date, session } = link.clone();
        let pk = partition(&entity);
        let expires_at = end_of_item(link.ends());
        Self { pk, sk: id, grant, code_hash, expires_date, session, expires_at }
    }

    fn of_entity(self, entity: EntityId) -> PanelLink {
        let Self { sk: id, grant, code_hash, expires_date, session, .. } = self;
        PanelLink { entity, id, grant, code_hash, expires_date, session }
    }
}

impl LinkStore {
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Writes a new link, together with the request's idempotency record, if any.
    pub async fn put(&self, link: &PanelLink, record: Option<Record>) -> Result<(), IdempotencyError> {
        const DOING: &str = "writing a panel link";
        let put = Put::item(&LinkItem::of(link), DOING)?;
        self.table.write_recorded(Transaction::new().with(put), record, DOING).await.map(drop)
    }

    /// The entity's link with this identifier. The read is strongly consistent.
    pub async fn find(&self, entity: &EntityId, id: &PanelLinkId) -> Result<Option<PanelLink>, TableError> {
        let key = (partition(entity), id.to_string());
        let item: Option<LinkItem> = self.table.read(key, "reading a panel link").await?;
        Ok(item.map(|item| item.of_entity(entity.clone())))
    }

    /// An entity's newest links that are older than the given one and can be opened or have a valid session: this many,
    /// or fewer if there are no more.
    pub async fn good_of(
        &self,
        entity: &EntityId,
        before: Option<&PanelLinkId>,
        count: usize,
        now: Time,
    ) -> Result<Vec<PanelLink>, TableError> {
        let query = Query::partition(partition(entity)).newest_first();
        let mut after = before.map(|id| PageEnd::new(&Key::new(partition(entity), id.as_str()), []));
        let mut links = Vec::new();
        loop {
            let page = self.table.page(query.clone().after(after), "listing panel links").await?;
            let read = page.entries.into_iter().map(|item: LinkItem| item.of_entity(entity.clone()));
            links.extend(read.filter(|link| link.is_good(now)));
            if page.next.is_none() || links.len() >= count {
                links.truncate(count);
                return Ok(links);
            }
            after = page.next;
        }
    }

    /// Begins a link's session. Lost if the link was opened or removed in the meantime. If the SDK repeats the write
    /// because a response was lost, the session's key shows that the first write was this one.
    pub async fn open(&self, link: &PanelLink, session: &PanelSession) -> Result<Written<()>, TableError> {
        let unopened = is("codeHash", link.code_hash.clone()).and(absent("session"));
        self.write_session(link, session, unopened, "opening a panel link").await
    }

    /// Replaces a session's key. Lost if another key replaced it, the session was extended, or the link was removed.
    pub async fn renew(
        &self,
        link: &PanelLink,
        from: &PanelSession,
        session: &PanelSession,
    ) -> Result<Written<()>, TableError> {
        self.write_session(link, session, is_session(from), "renewing a panel session").await
    }

    /// Extends a link's session until this time and returns the link. Lost if the session already lasts longer or has
    /// ended, or the link was removed: a session is never shortened or restored. Does not depend on the session's key,
    /// so it still works if the page renews the session.
    pub async fn prolong(&self, link: &PanelLink, ends: Time, now: Time) -> Result<Written<PanelLink>, TableError> {
        let change = Change::of(key(link))
            .set(ENDS_DATE, ends)
            .set("expiresAt", end_of_item(ends))
            .only_if(more(ENDS_DATE, now).and(at_most(ENDS_DATE, ends)));
        let written: Written<LinkItem> = self.table.write_and_read(change, "extending a panel session").await?;
        Ok(written.map(|item| item.of_entity(link.entity.clone())))
    }

    async fn write_session(
        &self,
        link: &PanelLink,
        session: &PanelSession,
        unchanged: Condition,
        doing: &'static str,
    ) -> Result<Written<()>, TableError> {
        let change = Change::of(key(link))
            .set("session", Value::of(session, doing)?)
            .set("expiresAt", end_of_item(session.ends_date))
            .only_if(unchanged.or(is_session(session)));
        self.table.write(change, doing).await
    }

    /// Removes a link and revokes its session's tokens, together with the request's idempotency record, if any. Lost if
    /// it has already been removed.
    pub async fn remove(
        &self,
        link: &PanelLink,
        record: Option<Record>,
        now: Time,
    ) -> Result<Written<()>, IdempotencyError> {
        let until = now + TOKEN_LIFETIME + BEING_ISSUED;
        let revoked = revocations::of_session(link.id.as_str(), until, now)?;
        let writes = Transaction::new().with(Delete::of(key(link)).only_if(exists())).with(revoked);
        self.table.write_recorded(writes, record, "removing a panel link").await
    }
}

const KEY_HASH: (&str, &str) = ("session", "keyHash");
const ENDS_DATE: (&str, &str) = ("session", "endsDate");

/// The link has this session, with this key and this end.
fn is_session(session: &PanelSession) -> Condition {
    is(KEY_HASH, session.key_hash.clone()).and(is(ENDS_DATE, session.ends_date))
}

fn partition(entity: &EntityId) -> String {
    format!("PANEL#{entity}")
}

fn key(link: &PanelLink) -> Key {
    Key::new(partition(&link.entity), link.id.as_str())
}

fn end_of_item(ends: Time) -> i64 {
    (ends + KEPT).as_seconds()
}

#[cfg(test)]
mod tests {
    use super::{super::key::tests::key, *};
    use auth::Scopes;
    use base::SystemRandom;

    #[test]
    fn a_link_is_read_as_written_before_and_after_it_is_opened() {
        let now = Time::from_millis(1_795_167_900_123);
        let grant = PanelGrant {
            client_id: "app".into(),
            credential_id: Some("sec_1".into()),
            scopes: Scopes::parse("integrations.read").expect("a scope"),
            may_publish: true,
            lifetime_seconds: 60,
            name: Some("Ada".into()),
            place: None,
            created_date: now,
        };
        let fresh = PanelLink::new(&key(), grant);
        let session = PanelSession::begin(&key(), Duration::from_secs(60), now, &SystemRandom);
        for link in [fresh.clone(), PanelLink { session: Some(session), ..fresh }] {
            let item = Put::item(&LinkItem::of(&link), "").expect("an item");
            let read: LinkItem = item.read_back("").expect("an item");
            assert_eq!(read.expires_at, (link.ends() + KEPT).as_seconds());
            assert_eq!(read.of_entity(link.entity.clone()), link);
        }
    }
}
