//! Conditional entries of lists, evaluated with the parameters' defaults.
//!
//! <https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference-conditions.html>

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::TemplateError;

/// The conditions of a template.
pub(crate) struct Conditions<'a> {
    pub(crate) conditions: &'a Value,
    /// The parameters' defaults.
    pub(crate) defaults: &'a BTreeMap<String, String>,
}

impl Conditions<'_> {
    /// The value, with each `Fn::If` in a list replaced by its result, or removed if the result is `AWS::NoValue`.
    ///
    /// # Errors
    /// If a condition has an unsupported form, or compares a parameter without a default.
    pub(crate) fn decide(&self, value: &Value) -> Result<Value, TemplateError> {
        match value {
            Value::Array(entries) => {
                let mut decided = Vec::with_capacity(entries.len());
                for entry in entries {
                    let entry = match &entry["Fn::If"] {
                        Value::Array(parts) => self.choose(parts)?,
                        _ => entry,
                    };
                    if *entry != json!({ "Ref": "AWS::NoValue" }) {
                        decided.push(self.decide(entry)?);
                    }
                }
                Ok(decided.into())
            }
            // A whole value, whose parts are no list.
            Value::Object(members) if members.contains_key("Fn::If") => Ok(value.clone()),
            Value::Object(members) => {
                let members = members.iter().map(|(name, member)| Ok((name.clone(), self.decide(member)?)));
                Ok(members.collect::<Result<Map<_, _>, TemplateError>>()?.into())
            }
            scalar => Ok(scalar.clone()),
        }
    }

    fn choose<'v>(&self, parts: &'v [Value]) -> Result<&'v Value, TemplateError> {
        let malformed = || TemplateError::Condition(Value::from(parts).to_string());
        let [Value::String(name), yes, no] = parts else { return Err(malformed()) };
        let holds = self.holds(&self.conditions[name]).ok_or_else(malformed)?;
        Ok(if holds { yes } else { no })
    }

    fn holds(&self, condition: &Value) -> Option<bool> {
        if let [other] = condition["Fn::Not"].as_array().map_or(&[][..], Vec::as_slice) {
            return Some(!self.holds(other)?);
        }
        let [left, right] = condition["Fn::Equals"].as_array()?.as_slice() else { return None };
        Some(self.text(left)? == self.text(right)?)
    }

    fn text<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        match value["Ref"].as_str() {
            Some(parameter) => self.defaults.get(parameter).map(String::as_str),
            None => value.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(list: &Value) -> Option<Value> {
        let conditions = json!({
            "Former": { "Fn::Equals": [{ "Ref": "Keep" }, "true"] },
            "Present": { "Fn::Not": [{ "Fn::Equals": [{ "Ref": "Keep" }, "true"] }] },
            "Unknown": { "Fn::Equals": [{ "Ref": "NoDefault" }, "true"] },
            "Other": { "Fn::Or": [] },
        });
        let defaults = BTreeMap::from([("Keep".to_owned(), "false".to_owned())]);
        Conditions { conditions: &conditions, defaults: &defaults }.decide(list).ok()
    }

    #[test]
    fn an_entry_of_a_list_stays_if_its_condition_holds_by_the_defaults() {
        let on = |condition: &str| json!([1, { "Fn::If": [condition, { "a": [2] }, { "Ref": "AWS::NoValue" }] }]);
        assert_eq!(decided(&on("Former")), Some(json!([1])));
        assert_eq!(decided(&json!({ "in": on("Present") })), Some(json!({ "in": [1, { "a": [2] }] })));
        for unclear in ["Unknown", "Other", "Missing"] {
            assert_eq!(decided(&on(unclear)), None, "{unclear}");
        }
    }

    #[test]
    fn a_conditional_whole_value_stays_unchanged() {
        let whole = json!({ "AlarmActions": { "Fn::If": ["Unknown", ["a"], { "Ref": "AWS::NoValue" }] } });
        assert_eq!(decided(&whole), Some(whole));
    }
}
