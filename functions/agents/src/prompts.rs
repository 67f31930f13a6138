//! Prompts with which people begin a conversation. The person's input follows the instructions, quoted as JSON.

use problem::{JsonBody, Problem, Rule};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The maximum length of an input, in characters.
const MAX_LENGTH: usize = 2_048;

/// A prompt in the list.
#[derive(Debug, Serialize)]
pub struct Prompt {
    /// The name for programs.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// The conversation's subject, to show to people.
    pub description: &'static str,
    /// The person's inputs.
    pub arguments: &'static [PromptArgument],
    /// The model's task.
    #[serde(skip)]
    instructions: &'static str,
}

/// One of the person's inputs. Its value is a string.
#[derive(Debug, Serialize)]
pub struct PromptArgument {
    /// The name for programs.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// The expected input, to show to people.
    pub description: &'static str,
    /// Whether the prompt needs it.
    pub required: bool,
}

const MANAGING_ENTITY: PromptArgument = PromptArgument {
    name: "managingEntity",
    title: "Managing entity",
    description: "The managing entity's identifier; only needed if the application covers several.",
    required: false,
};

/// The prompts.
pub const ALL: &[Prompt] = &[
    Prompt {
        name: "why_webhook_fails",
        title: "Why is this webhook failing?",
        description: "Finds out why a webhook's events do not arrive, and what to do about it.",
        arguments: &[
            PromptArgument {
                name: "webhook",
                title: "Webhook",
                description: "The webhook's identifier (whk_…) or name.",
                required: true,
            },
            MANAGING_ENTITY,
        ],
        instructions: include_str!("prompts/why_webhook_fails.md"),
    },
    Prompt {
        name: "set_up_webhook",
        title: "Set up a webhook",
        description: "Sets up a webhook for events of your choice, and tests it.",
        arguments: &[
            PromptArgument {
                name: "events",
                title: "Events",
                description: "The events that you want to receive, in your own words, such as new and cancelled \
                              bookings.",
                required: true,
            },
            PromptArgument {
                name: "eventUrl",
                title: "Address",
                description: "The https address of your endpoint.",
                required: true,
            },
            MANAGING_ENTITY,
        ],
        instructions: include_str!("prompts/set_up_webhook.md"),
    },
];

/// The prompt with this name.
pub fn find(name: &str) -> Option<&'static Prompt> {
    ALL.iter().find(|prompt| prompt.name == name)
}

/// The text of a prompt with these arguments.
///
/// # Errors
/// 400 for missing, malformed and unknown arguments.
pub fn text(prompt: &Prompt, arguments: &Map<String, Value>) -> Result<String, Problem> {
    // Clients send null or an empty string for an empty field.
    let is_optional = |name: &str| prompt.arguments.iter().any(|known| known.name == name && !known.required);
    let given = arguments.iter().filter(|(name, value)| !(value.is_null() && is_optional(name)));
    let given: Map<_, _> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    let body = Value::Object(given).to_string();
    let mut body = JsonBody::read(body.as_bytes())?;
    let mut filled_in = Map::new();
    for argument in prompt.arguments {
        let text = if argument.required {
            body.required_text(argument.name)
        } else {
            body.optional::<String>(argument.name, "a string").filter(|text| !text.is_empty())
        };
        let Some(text) = text else { continue };
        if text.chars().count() > MAX_LENGTH || text.chars().any(char::is_control) {
            let message = format!("must have at most {MAX_LENGTH} characters and no control characters");
            body.violations.add(argument.name, Rule::InvalidFormat, message);
        }
        filled_in.insert(argument.name.to_owned(), json!(text));
    }
    body.finish()?;
    Ok(format!("{}\n{:#}", prompt.instructions, Value::Object(filled_in)))
}

#[cfg(test)]
mod tests {
    use problem::Violation;

    use super::*;
    use crate::tools;

    fn said(name: &str, arguments: &Value) -> Result<String, Problem> {
        text(find(name).expect("a prompt"), arguments.as_object().expect("an object"))
    }

    #[test]
    fn a_prompt_names_only_tools_that_exist() {
        for prompt in ALL {
            let quoted = prompt.instructions.split('`').skip(1).step_by(2);
            let arguments: Vec<_> = prompt.arguments.iter().map(|argument| argument.name).collect();
            let members = ["untrusted", "idempotencyKey", "signingSecret", "area.*"];
            for name in quoted.filter(|name| !arguments.contains(name) && !members.contains(name)) {
                assert!(tools::find(name).is_some(), "{}: {name}", prompt.name);
            }
        }
    }

    #[test]
    fn the_input_follows_the_instructions_as_json() {
        let text = said("why_webhook_fails", &json!({ "webhook": "a \"b\"" })).expect("a string");
        assert!(text.ends_with("{\n  \"webhook\": \"a \\\"b\\\"\"\n}"), "{text}");
        assert!(text.starts_with("Find out why"));
    }

    #[test]
    fn every_missing_malformed_or_unknown_argument_is_named() {
        let fields = |name, arguments: Value| {
            let problem = said(name, &arguments).expect_err("refused");
            problem.violations().iter().map(Violation::name).collect::<Vec<_>>()
        };
        assert_eq!(fields("set_up_webhook", json!({})), ["events", "eventUrl"]);
        assert_eq!(fields("why_webhook_fails", json!({ "webhook": 1, "hook": "x" })), ["webhook", "hook"]);
        for bad in [json!(""), json!("a\nb"), json!("x".repeat(MAX_LENGTH + 1)), Value::Null] {
            assert_eq!(fields("why_webhook_fails", json!({ "webhook": bad })), ["webhook"]);
        }
    }

    #[test]
    fn an_empty_field_is_left_out() {
        for empty in [json!(""), Value::Null] {
            let left_empty = said("why_webhook_fails", &json!({ "webhook": "x", "managingEntity": empty }));
            let without = said("why_webhook_fails", &json!({ "webhook": "x" }));
            assert_eq!(left_empty.expect("a string"), without.expect("a string"));
        }
    }
}
