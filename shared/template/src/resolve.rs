//! Resolves `Ref`, `Fn::GetAtt` and `Fn::Sub`, as CloudFormation does at deployment, by a lookup of names.

use serde_json::{Map, Value};

/// The target of a template's expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// `Ref`: a parameter's value, a resource's physical name, or a pseudo parameter such as `AWS::Region`.
    Name(&'a str),
    /// `Fn::GetAtt`: a resource's attribute.
    Attribute(&'a str, &'a str),
}

impl std::fmt::Display for Reference<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(formatter, "{name}"),
            Self::Attribute(resource, attribute) => write!(formatter, "{resource}.{attribute}"),
        }
    }
}

/// Why an expression cannot be resolved.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name is unknown.
    #[error("`{0}` is unknown")]
    Unknown(String),
    /// This function of CloudFormation is not supported.
    #[error("`{0}` is not supported")]
    Unsupported(String),
    /// The expression has the wrong form.
    #[error("`{0}` has the wrong form")]
    Malformed(&'static str),
}

/// The value, with every reference replaced by its value in `lookup`.
///
/// # Errors
/// The first unknown reference, or the unsupported form.
pub fn resolve(value: &Value, lookup: &dyn Fn(Reference<'_>) -> Option<Value>) -> Result<Value, ResolveError> {
    match value {
        Value::Array(items) => items.iter().map(|item| resolve(item, lookup)).collect(),
        Value::Object(members) => match single_member(members) {
            Some(("Ref", argument)) => {
                let name = argument.as_str().ok_or(ResolveError::Malformed("Ref"))?;
                known(Reference::Name(name), lookup)
            }
            Some(("Fn::GetAtt", argument)) => match argument.as_array().map(Vec::as_slice) {
                Some([Value::String(resource), Value::String(attribute)]) => {
                    known(Reference::Attribute(resource, attribute), lookup)
                }
                _ => Err(ResolveError::Malformed("Fn::GetAtt")),
            },
            Some(("Fn::Sub", argument)) => {
                let text = argument.as_str().ok_or(ResolveError::Malformed("Fn::Sub"))?;
                substitute(text, lookup).map(Value::String)
            }
            Some((other, _)) if other.starts_with("Fn::") => Err(ResolveError::Unsupported(other.to_owned())),
            _ => members
                .iter()
                .map(|(name, member)| Ok((name.clone(), resolve(member, lookup)?)))
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object),
        },
        scalar => Ok(scalar.clone()),
    }
}

/// The resolved value in the form of an environment variable: text unchanged, numbers and booleans as text.
///
/// # Errors
/// The errors of [`resolve`], and a value that is a list or a map.
pub fn resolve_to_text(value: &Value, lookup: &dyn Fn(Reference<'_>) -> Option<Value>) -> Result<String, ResolveError> {
    match resolve(value, lookup)? {
        Value::String(text) => Ok(text),
        scalar @ (Value::Number(_) | Value::Bool(_)) => Ok(scalar.to_string()),
        _ => Err(ResolveError::Malformed("environment variable")),
    }
}

fn single_member(members: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut entries = members.iter();
    match (entries.next(), entries.next()) {
        (Some((name, value)), None) => Some((name, value)),
        _ => None,
    }
}

fn known(reference: Reference<'_>, lookup: &dyn Fn(Reference<'_>) -> Option<Value>) -> Result<Value, ResolveError> {
    lookup(reference).ok_or_else(|| ResolveError::Unknown(reference.to_string()))
}

/// Replaces `${Name}` and `${Resource.Attribute}`; `${!Literal}` means `${Literal}`.
fn substitute(text: &str, lookup: &dyn Fn(Reference<'_>) -> Option<Value>) -> Result<String, ResolveError> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = rest.split_at(start);
        let (expression, remainder) = after[2..].split_once('}').ok_or(ResolveError::Malformed("Fn::Sub"))?;
        result.push_str(before);
        if let Some(literal) = expression.strip_prefix('!') {
            result.push_str(&format!("${{{literal}}}"));
        } else {
            let reference = match expression.split_once('.') {
                Some((resource, attribute)) => Reference::Attribute(resource, attribute),
                None => Reference::Name(expression),
            };
            match known(reference, lookup)? {
                Value::String(value) => result.push_str(&value),
                value => result.push_str(&value.to_string()),
            }
        }
        rest = remainder;
    }
    result.push_str(rest);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lookup(reference: Reference<'_>) -> Option<Value> {
        match reference {
            Reference::Name("Environment") => Some(json!("local")),
            Reference::Name("Count") => Some(json!(3)),
            Reference::Attribute("Queue", "Arn") => Some(json!("arn:queue")),
            _ => None,
        }
    }

    #[test]
    fn references_are_replaced_at_any_depth() {
        let value = json!({
            "NAME": {"Fn::Sub": "waypost-${Environment}-${Count}-${Queue.Arn}-${!Kept}"},
            "LIST": [{"Ref": "Count"}, {"Fn::GetAtt": ["Queue", "Arn"]}, true],
        });
        assert_eq!(
            resolve(&value, &lookup),
            Ok(json!({
                "NAME": "waypost-local-3-arn:queue-${Kept}",
                "LIST": [3, "arn:queue", true],
            }))
        );
    }

    #[test]
    fn the_error_names_the_unknown_reference() {
        for value in [json!({"Fn::Sub": "${Queue.Name}"}), json!({"Fn::GetAtt": ["Queue", "Name"]})] {
            assert_eq!(resolve(&value, &lookup), Err(ResolveError::Unknown("Queue.Name".to_owned())));
        }
        assert_eq!(
            resolve(&json!({"Fn::If": ["A", 1, 2]}), &lookup),
            Err(ResolveError::Unsupported("Fn::If".to_owned()))
        );
    }

    #[test]
    fn an_environment_variable_is_text() {
        assert_eq!(resolve_to_text(&json!(60), &lookup), Ok("60".to_owned()));
        assert_eq!(resolve_to_text(&json!(["a"]), &lookup), Err(ResolveError::Malformed("environment variable")));
    }
}
