//! The smallest parts of what statements allow: an action on a resource, for a partition key.

use std::fmt;

use crate::{access::Access, decision::Use, names::without_suffix, rights::FunctionRights};

/// An action on a resource that a statement allows a function, for a partition key where the statement names any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// The function's name.
    pub function: String,
    /// Where the statement stands.
    pub statement: String,
    /// The action, as the statement has it.
    pub action: String,
    /// The resource, as the template has it.
    pub resource: String,
    /// The partition key, as the statement has it.
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
    /// Everything that its statements allow.
    pub fn grants(&self) -> impl Iterator<Item = Grant> {
        let allowing = self.written.iter().enumerate().filter(|(_, statement)| statement.allows);
        let parts = allowing.flat_map(|(place, statement)| {
            let said = statement.conditions.iter().find_map(|condition| condition.said());
            let keys: Vec<_> = said.map_or_else(|| vec![None], |(_, said)| (0..said.len()).map(Some).collect());
            let (actions, resources) = (statement.actions.len(), statement.resources.len());
            let pairs = (0..actions).flat_map(move |action| (0..resources).map(move |resource| (action, resource)));
            pairs.flat_map(move |(action, resource)| {
                keys.clone().into_iter().map(move |key| Use { statement: place, action, resource, key })
            })
        });
        parts.map(|part| self.grant(part))
    }

    /// The grant that allowed something.
    #[must_use]
    pub fn grant(&self, part: Use) -> Grant {
        let statement = &self.written[part.statement];
        let said = statement.conditions.iter().find_map(|condition| condition.said());
        Grant {
            function: self.name.clone(),
            statement: statement.name.clone(),
            action: statement.actions[part.action].clone(),
            resource: statement.resources[part.resource].clone(),
            key: part.key.and_then(|key| said.map(|(_, said)| said[key].clone())),
        }
    }

    /// The partition key or, without one, the resource that a grant names where it is deployed, wildcards included.
    #[must_use]
    pub fn pattern(&self, part: Use) -> &str {
        let statement = &self.statements[part.statement];
        let said = statement.conditions.iter().find_map(|condition| condition.said());
        match (part.key, said) {
            (Some(key), Some((_, said))) => &said[key],
            _ => &statement.resources[part.resource],
        }
    }

    /// For what of an access a grant was used: its partition keys that the grant names, or else its resource.
    #[must_use]
    pub fn used_for<'a>(&self, part: Use, access: &'a Access) -> Vec<&'a str> {
        let said = self.statements[part.statement].conditions.iter().find_map(|condition| condition.said());
        let Some((comparison, said)) = said.filter(|_| part.key.is_some()) else {
            return vec![without_suffix(&access.resource)];
        };
        let keys = access.leading_keys.iter().flatten();
        let is_of_part = |key: &&String| said.iter().position(|said| comparison.holds(said, key)) == part.key;
        keys.filter(is_of_part).map(String::as_str).collect()
    }
}
