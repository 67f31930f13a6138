//! Lists links, newest first, one page at a time.

use serde::Serialize;

use super::{error::PanelError, link::PanelLink, links::PanelLinks, view::LinkView};
use auth::AuthorizedEntity;
use base::{PanelLinkId, Time};
use problem::{Problem, Query};

/// How many links a page has by default.
const DEFAULT_LIMIT: usize = 25;
/// The maximum number of links that a page may have.
const MAX_LIMIT: usize = 100;

/// A request for a page of links.
#[derive(Debug, PartialEq, Eq)]
pub struct LinkListRequest {
    limit: usize,
    /// The previous page's last link, which is its cursor.
    before: Option<PanelLinkId>,
}

/// A page of links.
#[derive(Debug)]
pub struct LinkPage {
    links: Vec<PanelLink>,
    /// Whether there are older links.
    has_next: bool,
}

/// A page of links on the wire.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkPageView<'a> {
    items: Vec<LinkView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a PanelLinkId>,
}

impl LinkListRequest {
    /// Reads a query's parameters.
    pub fn read(mut query: Query<'_>) -> Result<Self, Problem> {
        let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT);
        let cursor = query.optional("cursor", "a single string", Some);
        query.finish()?;
        let before = cursor.map(|text| PanelLinkId::parse(text).ok_or_else(Problem::invalid_cursor)).transpose()?;
        Ok(Self { limit, before })
    }
}

impl PanelLinks {
    /// A page of an entity's links that can be opened or have a valid session, newest first.
    pub async fn list(
        &self,
        entity: &AuthorizedEntity,
        request: &LinkListRequest,
        now: Time,
    ) -> Result<LinkPage, PanelError> {
        let LinkListRequest { limit, before } = request;
        let mut links = self.0.good_of(entity.id(), before.as_ref(), limit + 1, now).await?;
        let has_next = links.len() > *limit;
        links.truncate(*limit);
        Ok(LinkPage { links, has_next })
    }
}

impl LinkPage {
    /// The page as its managing entity sees it.
    pub fn view(&self) -> LinkPageView<'_> {
        let last = self.links.last().filter(|_| self.has_next);
        LinkPageView { items: self.links.iter().map(PanelLink::view).collect(), next_cursor: last.map(|link| &link.id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;
    use problem::{ProblemKind, Violation};

    #[test]
    fn a_page_begins_after_a_link_and_has_a_default_size() {
        let id = PanelLinkId::new(Time::from_millis(0), &SystemRandom);
        assert_eq!(LinkListRequest::read(Query::new([])).expect("good"), LinkListRequest { limit: 25, before: None });
        let query = Query::new([("limit", "100"), ("cursor", id.as_str())]);
        assert_eq!(LinkListRequest::read(query).expect("good"), LinkListRequest { limit: 100, before: Some(id) });
    }

    #[test]
    fn every_bad_parameter_is_named() {
        for bad in [("limit", "0"), ("limit", "101"), ("after", "1")] {
            let problem = LinkListRequest::read(Query::new([bad])).expect_err("refused");
            let names: Vec<_> = problem.violations().iter().map(Violation::name).collect();
            assert_eq!(names, [bad.0], "{bad:?}");
        }
        for cursor in ["", "plk_1"] {
            let problem = LinkListRequest::read(Query::new([("cursor", cursor)])).expect_err("refused");
            assert_eq!(problem.kind, ProblemKind::InvalidCursor, "{cursor}");
        }
    }
}
