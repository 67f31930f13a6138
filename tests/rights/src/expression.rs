//! The partition that a `KeyConditionExpression` names.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.KeyConditionExpressions.html>

use serde_json::Value;

/// The string in an attribute value that can serve as a key.
pub fn key_text(value: &Value) -> Option<String> {
    ["S", "N", "B"].iter().find_map(|kind| value.get(kind)?.as_str()).map(str::to_owned)
}

/// The value that a query's key condition requires for the attribute `key`; the operator must be `=`.
pub fn partition(request: &Value, key: &str) -> Option<String> {
    let tokens = tokens(request["KeyConditionExpression"].as_str()?);
    let name = |token: &str| match token.starts_with('#') {
        true => request["ExpressionAttributeNames"][token].as_str() == Some(key),
        false => token == key,
    };
    let equal = tokens.windows(3).find(|window| name(&window[0]) && window[1] == "=")?;
    key_text(&request["ExpressionAttributeValues"][&equal[2]])
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for character in text.chars() {
        let is_word = character.is_alphanumeric() || "_#:.-".contains(character);
        match tokens.last_mut() {
            Some(last) if is_word && in_word => last.push(character),
            // Some operators have two characters.
            Some(last) if character == '=' && (last == "<" || last == ">") => last.push('='),
            _ if character.is_whitespace() => {}
            _ => tokens.push(character.to_string()),
        }
        in_word = is_word;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_partition_is_found_by_name_or_placeholder_in_any_position() {
        let request = |text: &str| {
            json!({
                "KeyConditionExpression": text,
                "ExpressionAttributeNames": { "#n0": "pk", "#n1": "sk" },
                "ExpressionAttributeValues": { ":v0": { "S": "ENT#1" }, ":v1": { "N": "7" } },
            })
        };
        for text in ["#n0 = :v0", "#n1>=:v1 AND #n0=:v0", "(#n0 = :v0) AND begins_with(#n1, :v1)", "pk = :v0"] {
            assert_eq!(partition(&request(text), "pk").as_deref(), Some("ENT#1"), "{text}");
        }
        assert_eq!(partition(&request("sk = :v1"), "sk").as_deref(), Some("7"));
        for text in ["#n0 >= :v0", "#n1 = :v1", "", "#n0 = :v2", "other = :v0"] {
            assert_eq!(partition(&request(text), "pk"), None, "{text}");
        }
    }
}
