//! Limits per managing entity on requests that cause a lot of work, such as attempts, or that occupy an invocation.
//! They are far above what a person needs.

use crate::subscriptions::error::WebhookError;
use auth::AuthorizedEntity;
use base::Time;
use storage::{Allowance, Allowances, Table};

/// The limits, with their counts in the table.
#[derive(Debug, Clone)]
pub struct RequestLimits(Allowances);

impl RequestLimits {
    /// Limits that are counted in this table.
    pub fn new(table: Table) -> Self {
        Self(Allowances::new(table))
    }

    /// Counts a request before its work begins. Fails if the entity has reached the limit.
    pub(crate) async fn count(
        &self,
        what: Allowance,
        entity: &AuthorizedEntity,
        now: Time,
    ) -> Result<(), WebhookError> {
        self.count_many(what, 1, entity, now).await
    }

    /// Counts a request several times, such as once for each webhook that it reads.
    pub(crate) async fn count_many(
        &self,
        what: Allowance,
        times: usize,
        entity: &AuthorizedEntity,
        now: Time,
    ) -> Result<(), WebhookError> {
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        match self.0.spend(what, times, entity.id().as_str(), now).await? {
            None => Ok(()),
            Some(end) => Err(WebhookError::TooManyRequests { what, wait: end.since(now).as_secs() + 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::Problem;

    #[test]
    fn a_refused_request_names_the_limit_and_when_to_try_again() {
        let problem = Problem::from(WebhookError::TooManyRequests { what: Allowance::Recoveries, wait: 17 });
        assert_eq!(
            (problem.kind.slug(), &problem.properties["limitName"]),
            ("too-many-requests", &"recoveries".into())
        );
        assert!(problem.detail.contains("20 requests") && problem.detail.contains("17 seconds"), "{}", problem.detail);
        let problem = Problem::from(WebhookError::TooManyRequests { what: Allowance::FeedWaits, wait: 7 });
        assert!(problem.detail.contains("200 waiting feed requests per 10 seconds"), "{}", problem.detail);
        let problem = Problem::from(WebhookError::TooManyRequests { what: Allowance::OpenLists, wait: 7 });
        assert!(problem.detail.contains("`webhookIdentifier`"), "{}", problem.detail);
    }
}
