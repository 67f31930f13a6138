//! Reading connections: a page of a managing entity's connections, and one of them.

use crate::{
    connection::{Connection, ConnectionView},
    error::ConnectionError,
    page::{Page, PageRequest},
    store::Connections,
};
use auth::AuthorizedEntity;
use base::ConnectionId;
use problem::{Problem, Query};

/// A request for a page of connections.
pub type ConnectionListRequest = PageRequest<ConnectionId>;

impl ConnectionListRequest {
    /// Reads the parameters of a query for connections.
    pub fn of_query(query: Query<'_>) -> Result<Self, Problem> {
        Self::read(query, ConnectionId::parse)
    }
}

impl Connections {
    /// A page of an entity's connections, newest first.
    pub async fn page(
        &self,
        entity: &AuthorizedEntity,
        request: &ConnectionListRequest,
    ) -> Result<Page<Connection>, ConnectionError> {
        let mut all = self.of(entity).await?;
        all.sort_by(|one, other| other.id.cmp(&one.id));
        Ok(Page::cut(all, request, |connection| &connection.id, |id, after| id < after))
    }

    /// An entity's connection with this identifier.
    pub async fn show(&self, entity: &AuthorizedEntity, id: &str) -> Result<Connection, ConnectionError> {
        let all = self.of(entity).await?;
        all.into_iter().find(|connection| connection.id.as_str() == id).ok_or(ConnectionError::UnknownIdentifier)
    }
}

impl Page<Connection> {
    /// The page as its owner sees it.
    pub fn view(&self) -> Page<ConnectionView<'_>> {
        let items = self.items.iter().map(Connection::view).collect();
        Page { items, next_cursor: self.next_cursor.clone() }
    }
}
