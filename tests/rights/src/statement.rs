//! One statement in a policy.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements.html>

use serde_json::{Map, Value};

use crate::{
    access::Access,
    condition::{Comparison, Condition, texts},
    pattern,
};

/// The elements of a statement that are supported. Any other element is an error, since it could withdraw rights.
const ELEMENTS: [&str; 5] = ["Sid", "Effect", "Action", "Resource", "Condition"];

/// A statement, which allows or denies actions on resources under conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The name of the policy, and the statement's position in it, starting at 1.
    pub name: String,
    /// Whether the effect is `Allow`; otherwise, it is `Deny`, which takes precedence.
    pub allows: bool,
    /// The actions, which may have wildcards.
    pub actions: Vec<String>,
    /// The resources, which may have wildcards.
    pub resources: Vec<String>,
    /// The conditions, all of which must hold.
    pub conditions: Vec<Condition>,
}

/// Why a statement cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// An element is missing, or has an unsupported format.
    #[error("`{0}` is missing or has an unsupported format")]
    Malformed(&'static str),
    /// An element is not supported, such as `NotAction`.
    #[error("the element `{0}` is not supported")]
    Element(String),
    /// A condition operator is not supported.
    #[error("the condition operator `{0}` is not supported")]
    Operator(String),
    /// Recorded calls have no value for this condition key.
    #[error("the condition key `{0}` is unknown")]
    Key(String),
}

impl Statement {
    /// Reads a statement whose references have been resolved.
    pub fn read(name: String, statement: &Value) -> Result<Self, StatementError> {
        if let Some(element) =
            statement.as_object().into_iter().flat_map(Map::keys).find(|key| !ELEMENTS.contains(&key.as_str()))
        {
            return Err(StatementError::Element(element.clone()));
        }
        let list = |element: &'static str| texts(&statement[element]).ok_or(StatementError::Malformed(element));
        Ok(Self {
            name,
            allows: match statement["Effect"].as_str() {
                Some("Allow") => true,
                Some("Deny") => false,
                _ => return Err(StatementError::Malformed("Effect")),
            },
            actions: list("Action")?,
            resources: list("Resource")?,
            conditions: statement.get("Condition").map_or(Ok(Vec::new()), Condition::read)?,
        })
    }

    /// The partition keys that the first condition with a limit allows.
    pub fn keys(&self) -> Option<(Comparison, &[String])> {
        self.conditions.iter().find_map(Condition::keys)
    }

    /// The indexes of the action and the resource that match an access; `None` if the statement does not match.
    pub fn applies(&self, access: &Access) -> Option<(usize, usize)> {
        let action = self.actions.iter().position(|action| pattern::matches_action(action, &access.action))?;
        let resource = self.resources.iter().position(|resource| pattern::matches(resource, &access.resource))?;
        self.conditions.iter().all(|condition| condition.holds(access)).then_some((action, resource))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_statement_with_an_unknown_element_is_an_error() {
        let read = |statement: Value| Statement::read("a policy".to_owned(), &statement);
        let whole = json!({ "Sid": "A", "Effect": "Allow", "Action": "a:B", "Resource": ["arn"] });
        assert_eq!(read(whole.clone()).expect("whole").actions, ["a:B"]);
        for (element, value) in [("NotAction", json!("a")), ("NotResource", json!("a")), ("Principal", json!("*"))] {
            let mut more = whole.clone();
            more[element] = value;
            assert_eq!(read(more), Err(StatementError::Element(element.to_owned())));
        }
        for element in ["Effect", "Action", "Resource"] {
            let mut less = whole.clone();
            less[element] = Value::Null;
            assert_eq!(read(less), Err(StatementError::Malformed(element)));
        }
    }
}
