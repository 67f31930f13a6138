//! The smallest parts of statements: an action on a resource, for a partition key.

use std::fmt;

use crate::{access::Access, decision::Use, rights::FunctionRights};

/// An action on a resource that a statement allows a function to perform, for a partition key if the statement names
/// any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// The function's name.
    pub function: String,
    /// The statement's policy, and its position in the policy.
    pub statement: String,
    /// The action, as in the statement.
    pub action: String,
    /// The resource, as in the template.
    pub resource: String,
    /// The partition key, as in the statement.
    pub key: Option<String>,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} on {}", self.function, self.action, self.resource)?;
        if let Some(key) = &self.key {
            write!(f, " for {key}")?;
        }
        write!(f, " ({})", self.statement)
    }
}

impl FunctionRights {
    /// All grants that the function's statements contain.
    pub fn grants(&self) -> impl Iterator<Item = Grant> {
        self.parts().map(|part| self.grant(part))
    }

    /// The indexes of the function's grants.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Use> {
        let allowing = self.written.iter().enumerate().filter(|(_, statement)| statement.allows);
        allowing.flat_map(|(place, statement)| {
            let keys: Vec<_> = match statement.keys() {
                None => vec![None],
                Some((_, keys)) => (0..keys.len()).map(Some).collect(),
            };
            let actions = statement.actions.len();
            let resources = statement.resources.len();
            let pairs = (0..actions).flat_map(move |action| (0..resources).map(move |resource| (action, resource)));
            pairs.flat_map(move |(action, resource)| {
                keys.clone().into_iter().map(move |key| Use { statement: place, action, resource, key })
            })
        })
    }

    /// The grant that allowed an access.
    #[must_use]
    pub fn grant(&self, part: Use) -> Grant {
        let statement = &self.written[part.statement];
        Grant {
            function: self.name.clone(),
            statement: statement.name.clone(),
            action: statement.actions[part.action].clone(),
            resource: statement.resources[part.resource].clone(),
            key: part.key.and_then(|key| statement.keys().map(|(_, keys)| keys[key].clone())),
        }
    }

    /// The resource that a grant names in the deployment, including wildcards.
    pub(crate) fn resource_pattern(&self, part: Use) -> &str {
        &self.statements[part.statement].resources[part.resource]
    }

    /// The partition key that a grant names in the deployment.
    pub(crate) fn key_pattern(&self, part: Use) -> Option<&str> {
        let (_, keys) = self.statements[part.statement].keys()?;
        Some(&keys[part.key?])
    }

    /// The partition keys of an access that the grant covers.
    pub(crate) fn keys_for<'a>(&self, part: Use, access: &'a Access) -> impl Iterator<Item = &'a str> {
        let named = self.statements[part.statement].keys().filter(|_| part.key.is_some());
        let keys = access.leading_keys.iter().flatten().map(String::as_str);
        keys.filter(move |key| {
            named.is_some_and(|(comparison, named)| {
                named.iter().position(|named| comparison.holds(named, key)) == part.key
            })
        })
    }
}
