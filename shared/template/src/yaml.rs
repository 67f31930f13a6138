//! YAML to JSON, including CloudFormation's short forms: `!Ref X` becomes `{"Ref": "X"}`, `!Sub s` `{"Fn::Sub": s}`,
//! `!GetAtt A.B` `{"Fn::GetAtt": ["A", "B"]}`.

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// Why a string is not one YAML document that JSON can represent.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// The text is not YAML.
    #[error("not valid YAML")]
    Syntax(#[source] saphyr::ScanError),
    /// The text has no document, or several.
    #[error("one YAML document expected, {0} found")]
    NotOneDocument(usize),
    /// JSON has only string keys.
    #[error("a key that is not a scalar")]
    Key,
    /// JSON has no infinities, and a scalar can contradict its tag.
    #[error("a scalar that JSON cannot represent")]
    Scalar,
}

/// One YAML document as JSON.
///
/// # Errors
/// If the text is not exactly one YAML document, or contains a value that JSON cannot represent.
pub fn yaml_to_json(text: &str) -> Result<Value, YamlError> {
    let documents = Yaml::load_from_str(text).map_err(YamlError::Syntax)?;
    match documents.as_slice() {
        [document] => convert(document),
        several => Err(YamlError::NotOneDocument(several.len())),
    }
}

fn convert(node: &Yaml<'_>) -> Result<Value, YamlError> {
    match node {
        Yaml::Value(scalar) => convert_scalar(scalar),
        Yaml::Sequence(items) => items.iter().map(convert).collect(),
        Yaml::Mapping(entries) => entries
            .iter()
            .map(|(key, value)| Ok((convert_key(key)?, convert(value)?)))
            .collect::<Result<Map<_, _>, _>>()
            .map(Value::Object),
        Yaml::Tagged(tag, inner) if tag.handle == "!" => Ok(intrinsic(&tag.suffix, convert(inner)?)),
        Yaml::Tagged(_, inner) => convert(inner),
        // The loader resolves representations and aliases by default; one that remains contradicts its tag.
        Yaml::Representation(..) | Yaml::Alias(_) | Yaml::BadValue => Err(YamlError::Scalar),
    }
}

fn convert_scalar(scalar: &Scalar<'_>) -> Result<Value, YamlError> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(flag) => json!(flag),
        Scalar::Integer(number) => json!(number),
        Scalar::FloatingPoint(number) => {
            serde_json::Number::from_f64(number.into_inner()).map(Value::Number).ok_or(YamlError::Scalar)?
        }
        Scalar::String(text) => json!(text),
    })
}

/// OpenAPI writes status codes as bare integers (`200:`), which JSON spells as strings.
fn convert_key(key: &Yaml<'_>) -> Result<String, YamlError> {
    match key {
        Yaml::Value(Scalar::String(text)) => Ok(text.to_string()),
        Yaml::Value(Scalar::Integer(number)) => Ok(number.to_string()),
        Yaml::Value(Scalar::Boolean(flag)) => Ok(flag.to_string()),
        _ => Err(YamlError::Key),
    }
}

/// The long form of a CloudFormation tag; only `Ref` and `Condition` have no `Fn::` in front.
fn intrinsic(name: &str, argument: Value) -> Value {
    let (name, argument) = match (name, argument) {
        ("Ref" | "Condition", argument) => (name.to_owned(), argument),
        ("GetAtt", Value::String(path)) => ("Fn::GetAtt".to_owned(), path.splitn(2, '.').map(Value::from).collect()),
        (other, argument) => (format!("Fn::{other}"), argument),
    };
    json!({ name: argument })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_cloudformations_long_forms() {
        let text = "a: !Ref X\nb: !Sub 's${X}'\nc: !GetAtt Queue.Arn\nd: !If [C, !Ref Y, 1]\n";
        assert_eq!(
            yaml_to_json(text).expect("valid YAML"),
            json!({
                "a": {"Ref": "X"},
                "b": {"Fn::Sub": "s${X}"},
                "c": {"Fn::GetAtt": ["Queue", "Arn"]},
                "d": {"Fn::If": ["C", {"Ref": "Y"}, 1]},
            })
        );
    }

    #[test]
    fn scalars_keep_their_kind_and_integer_keys_become_text() {
        let text = "200: {ok: true, none: null, ratio: 0.5, version: '2010-09-09'}";
        assert_eq!(
            yaml_to_json(text).expect("valid YAML"),
            json!({"200": {"ok": true, "none": null, "ratio": 0.5, "version": "2010-09-09"}})
        );
    }

    #[test]
    fn duplicate_keys_and_several_documents_are_refused() {
        assert!(matches!(yaml_to_json("a: 1\na: 2\n"), Err(YamlError::Syntax(_))));
        assert!(matches!(yaml_to_json("a: 1\n---\nb: 2\n"), Err(YamlError::NotOneDocument(2))));
    }
}
