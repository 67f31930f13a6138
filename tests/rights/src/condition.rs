//! The conditions that this project's policies use: set operators on a request's partition keys.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html>

use serde_json::Value;

use crate::{access::Access, pattern, statement::StatementError};

/// The only supported condition key. It has several values, so it requires a set operator.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html>
const LEADING_KEYS: &str = "dynamodb:LeadingKeys";

/// A rule about a request's partition keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// `ForAllValues`: every key must match one of these strings. A request without keys satisfies it.
    All(Comparison, Vec<String>),
    /// `ForAnyValue`: at least one key must match one of these strings. A request without keys does not satisfy it.
    Any(Comparison, Vec<String>),
    /// `Null`: whether the request must have no keys.
    Absent(bool),
}

/// How a key is compared with a string from a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The key and the string must be equal.
    Equals,
    /// The key must match the string, which may contain wildcards.
    Like,
}

impl Comparison {
    /// Whether a request's key matches a string from a policy.
    pub fn holds(self, said: &str, key: &str) -> bool {
        match self {
            Self::Equals => said == key,
            Self::Like => pattern::matches(said, key),
        }
    }
}

impl Condition {
    /// Reads a statement's `Condition`, whose references have been resolved.
    pub fn read(block: &Value) -> Result<Vec<Self>, StatementError> {
        let malformed = || StatementError::Malformed("Condition");
        let mut conditions = Vec::new();
        for (operator, tests) in block.as_object().ok_or_else(malformed)? {
            for (key, values) in tests.as_object().ok_or_else(malformed)? {
                // The names of condition keys are case-insensitive.
                if !key.eq_ignore_ascii_case(LEADING_KEYS) {
                    return Err(StatementError::Key(key.clone()));
                }
                let values = texts(values).ok_or_else(malformed)?;
                conditions.push(Self::of(operator, values)?);
            }
        }
        Ok(conditions)
    }

    fn of(operator: &str, values: Vec<String>) -> Result<Self, StatementError> {
        let unknown = || StatementError::Operator(operator.to_owned());
        let comparison = |name: &str| match name {
            "StringEquals" => Ok(Comparison::Equals),
            "StringLike" => Ok(Comparison::Like),
            _ => Err(unknown()),
        };
        match (operator, operator.split_once(':')) {
            (_, Some(("ForAllValues", name))) => Ok(Self::All(comparison(name)?, values)),
            (_, Some(("ForAnyValue", name))) => Ok(Self::Any(comparison(name)?, values)),
            ("Null", None) => match values.as_slice() {
                [value] if value == "true" => Ok(Self::Absent(true)),
                [value] if value == "false" => Ok(Self::Absent(false)),
                _ => Err(StatementError::Malformed("Null")),
            },
            _ => Err(unknown()),
        }
    }

    /// Whether a request satisfies the condition.
    pub fn holds(&self, access: &Access) -> bool {
        let keys = access.leading_keys.as_deref().unwrap_or_default();
        let is_one =
            |comparison: Comparison, said: &[String], key: &String| said.iter().any(|said| comparison.holds(said, key));
        match self {
            Self::All(comparison, said) => keys.iter().all(|key| is_one(*comparison, said, key)),
            Self::Any(comparison, said) => keys.iter().any(|key| is_one(*comparison, said, key)),
            Self::Absent(absent) => keys.is_empty() == *absent,
        }
    }

    /// The keys that a request may name, if this condition limits them. `ForAnyValue` does not limit them: a request
    /// may also name other keys.
    pub fn keys(&self) -> Option<(Comparison, &[String])> {
        match self {
            Self::All(comparison, said) => Some((*comparison, said)),
            Self::Any(..) | Self::Absent(_) => None,
        }
    }
}

/// A string or a list of strings; booleans count as strings.
pub(crate) fn texts(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(switch) => Some(switch.to_string()),
        _ => None,
    };
    match value {
        Value::Array(values) => values.iter().map(text).collect(),
        value => Some(vec![text(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn holds(block: &Value, keys: Option<&[&str]>) -> bool {
        let conditions = Condition::read(block).expect("well-formed");
        let mut access = Access::new("dynamodb:GetItem", "arn");
        access.leading_keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
        conditions.iter().all(|condition| condition.holds(&access))
    }

    #[test]
    fn set_operators_hold_as_iam_says_also_for_a_request_without_keys() {
        let all = json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["APP#*", "KEYS"] } });
        assert!(holds(&all, Some(&["APP#1", "KEYS"])));
        assert!(!holds(&all, Some(&["APP#1", "ENT#1"])));
        assert!(holds(&all, None), "IAM lets a request without the key pass");
        let any = json!({ "ForAnyValue:StringEquals": { "DynamoDB:leadingkeys": "KEYS" } });
        assert!(holds(&any, Some(&["APP#1", "KEYS"])));
        assert!(!holds(&any, Some(&["KEYS#1"])));
        assert!(!holds(&any, None));
        let present = json!({ "Null": { "dynamodb:LeadingKeys": "false" } });
        assert!(holds(&present, Some(&["x"])) && !holds(&present, None));
    }

    #[test]
    fn unknown_conditions_are_errors_and_no_permissions() {
        for (block, said) in [
            (json!({ "StringLike": { "dynamodb:LeadingKeys": "a" } }), "the condition operator `StringLike`"),
            (json!({ "ForAllValues:StringNotLike": { "dynamodb:LeadingKeys": "a" } }), "`ForAllValues:StringNotLike`"),
            (json!({ "ForAllValues:StringLike": { "dynamodb:Attributes": "a" } }), "`dynamodb:Attributes`"),
            (json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": 1 } }), "Condition"),
            (json!(["a"]), "Condition"),
        ] {
            let error = Condition::read(&block).expect_err("not understood").to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_further_key_makes_all_no_easier_and_any_no_harder(keys in prop::collection::vec("[AB]#[01]?", 0..4), more in "[AB]#[01]?") {
            let mut access = Access::new("a", "b").with_keys(keys);
            let all = Condition::All(Comparison::Like, vec!["A#*".to_owned()]);
            let any = Condition::Any(Comparison::Like, vec!["A#*".to_owned()]);
            let before = (all.holds(&access), any.holds(&access));
            access.leading_keys.get_or_insert_default().push(more);
            let after = (all.holds(&access), any.holds(&access));
            prop_assert!((before.0 || !after.0) && (after.1 || !before.1));
        }
    }
}
