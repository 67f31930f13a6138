//! Decisions on accesses: an explicit denial takes precedence over a permission; by default, access is denied.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html>

use crate::{access::Access, rights::FunctionRights};

/// IAM's decision on an access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A statement allows the access, through these parts.
    Allowed(Vec<Use>),
    /// A statement denies the access.
    Denied,
    /// No statement allows the access.
    NotAllowed,
}

/// The part of a statement that allowed an access, as indexes into the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    /// The index of the statement among the function's statements.
    pub(crate) statement: usize,
    /// The index of the action.
    pub(crate) action: usize,
    /// The index of the resource.
    pub(crate) resource: usize,
    /// The index of the partition key, if one of the statement's conditions limits the keys.
    pub(crate) key: Option<usize>,
}

impl FunctionRights {
    /// Decides on an access.
    #[must_use]
    pub fn decide(&self, access: &Access) -> Decision {
        if self.statements.iter().any(|statement| !statement.allows && statement.applies(access).is_some()) {
            return Decision::Denied;
        }
        let mut allowing = self.statements.iter().enumerate().filter(|(_, statement)| statement.allows);
        let found = allowing.find_map(|(place, statement)| Some((place, statement, statement.applies(access)?)));
        let Some((place, statement, (action, resource))) = found else { return Decision::NotAllowed };
        let part = |key| Use { statement: place, action, resource, key };
        let Some((comparison, named)) = statement.keys() else { return Decision::Allowed(vec![part(None)]) };
        let keys = access.leading_keys.iter().flatten();
        let of_key = |key: &String| named.iter().position(|named| comparison.holds(named, key));
        Decision::Allowed(keys.filter_map(of_key).map(|key| part(Some(key))).collect())
    }
}
