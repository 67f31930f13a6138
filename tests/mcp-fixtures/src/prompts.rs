//! The prompts: one with text, one with arguments, one with a resource and one with an image.

use functions_agents::protocol::Refusal;
use problem::{Problem, Rule, Violation};
use serde_json::{Map, Value, json};

use crate::content::{image, resource, text};

/// A prompt: its name, its arguments, and a function that turns the arguments' values into the parts of its message.
type Prompt = (&'static str, &'static [&'static str], fn(&[&str]) -> Vec<Value>);

const ALL: [Prompt; 4] = [
    ("test_simple_prompt", &[], |_| vec![text("A text.")]),
    ("test_prompt_with_arguments", &["arg1", "arg2"], |values| vec![text(&values.join(" "))]),
    ("test_prompt_with_embedded_resource", &["resourceUri"], |values| {
        vec![resource(values[0], "text/plain", "A resource."), text("A text.")]
    }),
    ("test_prompt_with_image", &[], |_| vec![image(), text("A text.")]),
];

pub fn listed() -> Vec<Value> {
    let argument = |name: &&str| json!({ "name": name, "required": true });
    let entry = |(name, arguments, _): &Prompt| {
        let arguments: Vec<_> = arguments.iter().map(argument).collect();
        json!({ "name": name, "description": "For the suite.", "arguments": arguments })
    };
    ALL.iter().map(entry).collect()
}

pub fn said(name: &str, given: &Map<String, Value>) -> Result<Value, Refusal> {
    let (_, arguments, parts) = ALL.iter().find(|(known, _, _)| *known == name).ok_or(Refusal::Unknown)?;
    let value = |name: &&str| {
        given
            .get(*name)
            .and_then(Value::as_str)
            .ok_or_else(|| Problem::from(Violation::body(*name, Rule::Required, "is missing")))
    };
    let values = arguments.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let message = |content: Value| json!({ "role": "user", "content": content });
    Ok(json!({ "messages": parts(&values).into_iter().map(message).collect::<Vec<_>>() }))
}
