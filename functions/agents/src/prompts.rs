//! Texts with which people begin a conversation.

use problem::Problem;
use serde::Serialize;
use serde_json::{Map, Value};

/// A prompt in the list.
#[derive(Debug, Serialize)]
pub struct Prompt {
    /// For programs.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// For people: what the conversation will be about.
    pub description: &'static str,
    /// What the person fills in.
    pub arguments: &'static [PromptArgument],
}

/// What a person fills in. Its value is a text.
#[derive(Debug, Serialize)]
pub struct PromptArgument {
    /// For programs.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// For people: what to write there.
    pub description: &'static str,
    /// Whether the prompt makes no sense without it.
    pub required: bool,
}

/// The prompts.
pub const ALL: &[Prompt] = &[];

/// The prompt of this name.
pub fn find(name: &str) -> Option<&'static Prompt> {
    ALL.iter().find(|prompt| prompt.name == name)
}

/// What the person says with this prompt and these arguments.
///
/// # Errors
/// 400 for arguments that are missing or malformed.
pub fn text(_prompt: &Prompt, _arguments: &Map<String, Value>) -> Result<String, Problem> {
    Err(Problem::internal("a prompt without a text"))
}
