//! The selection of tools by headers, which a person sets in the client's configuration. It also selects the resources
//! that the tools show. A read-only agent cannot change anything, regardless of its token, and a short list takes up
//! less of a model's context.

use http::HeaderMap;
use problem::{Problem, Rule, Violation};

use crate::tool::Tool;

/// `true` excludes tools that make changes.
const READ_ONLY: &str = "X-MCP-Readonly";
/// The comma-separated names of the selected tools.
const TOOLS: &str = "X-MCP-Tools";

/// The tools that a client may list and call; without headers, all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    is_read_only: bool,
    names: Option<Vec<String>>,
}

impl Selection {
    /// The selection of a request.
    ///
    /// # Errors
    /// 400 for a malformed header, which must not allow every tool.
    pub fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        Ok(Self { is_read_only: is_read_only(headers)?, names: names(headers)? })
    }

    /// Whether a tool is selected. An unknown name selects nothing.
    pub fn has(&self, tool: &Tool) -> bool {
        let is_named = |names: &Vec<String>| names.iter().any(|selected| selected == tool.name);
        (tool.hints.read_only || !self.is_read_only) && self.names.as_ref().is_none_or(is_named)
    }
}

/// A header's values. If the header is repeated, all of them count (RFC 9110 §5.3).
fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    let text = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let values: Vec<_> = text.collect();
    values.iter().flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect()
}

fn is_read_only(headers: &HeaderMap) -> Result<bool, Problem> {
    values(headers, READ_ONLY).iter().try_fold(false, |is_so, value| match value.to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(is_so),
        _ => Err(Violation::header(READ_ONLY, Rule::UnknownValue, "must be `true` or `false`").into()),
    })
}

fn names(headers: &HeaderMap) -> Result<Option<Vec<String>>, Problem> {
    let names = values(headers, TOOLS);
    let is_name =
        |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !names.iter().all(is_name) {
        let detail = "must be a comma-separated list of tool names";
        return Err(Violation::header(TOOLS, Rule::InvalidFormat, detail).into());
    }
    Ok((!names.is_empty()).then_some(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    fn selected(pairs: &[(&'static str, &str)]) -> Result<Vec<&'static str>, Problem> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a value"));
        }
        let selection = Selection::of(&headers)?;
        Ok(tools::ALL.iter().filter(|tool| selection.has(tool)).map(|tool| tool.name).collect())
    }

    #[test]
    fn headers_select_reading_tools_or_named_ones() {
        assert_eq!(selected(&[]).expect("all").len(), tools::ALL.len());
        assert_eq!(selected(&[("x-mcp-readonly", "false")]).expect("all").len(), tools::ALL.len());
        let reading = selected(&[("x-mcp-readonly", "True")]).expect("some");
        assert!(reading.iter().all(|name| tools::find(name).is_some_and(|tool| tool.hints.read_only)));
        assert!(reading.contains(&"list_webhooks") && reading.len() < tools::ALL.len());
        let named = [("x-mcp-tools", "list_webhooks, create_webhook"), ("x-mcp-tools", "show_webhook")];
        assert_eq!(selected(&named).expect("three"), ["list_webhooks", "show_webhook", "create_webhook"]);
        let both = [named[0], ("x-mcp-readonly", "true")];
        assert_eq!(selected(&both).expect("one"), ["list_webhooks"]);
        assert!(
            selected(&[("x-mcp-tools", "list_webhook")]).expect("none").is_empty(),
            "a misspelt name selects nothing"
        );
    }

    #[test]
    fn a_malformed_header_is_refused() {
        for (name, value) in [
            ("x-mcp-readonly", ""),
            ("x-mcp-readonly", "yes"),
            ("x-mcp-readonly", "true;"),
            ("x-mcp-tools", ""),
            ("x-mcp-tools", "list webhooks"),
            ("x-mcp-tools", "list_webhooks,"),
        ] {
            let problem = selected(&[(name, value)]).expect_err("refused");
            let violations = problem.violations();
            assert!(violations.iter().all(|found| found.name().eq_ignore_ascii_case(name)), "{name}: {value}");
        }
    }
}
