//! Properties of new links, and their checks.

use std::{ops::RangeInclusive, time::Duration};

use super::views;
use crate::applications::new_application::{checked_name, checked_scopes};
use auth::Scopes;
use problem::{JsonBody, Problem, Rule};

/// The shortest and longest session lifetimes, in seconds.
const LIFETIMES: RangeInclusive<u32> = 60..=86_400;
/// The longest lifetime of a session, from its opening or from its last renewal by its application.
pub const LONGEST_LIFETIME: Duration = Duration::from_secs(86_400);
/// A session's default lifetime.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The maximum length of `place`, the page that a link opens, in characters.
const MAX_PLACE: usize = 1000;

/// A new link's properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPanelLink {
    /// The session's scopes; `None` means all of the creator's scopes.
    pub scopes: Option<Scopes>,
    /// How long the session lasts.
    pub lifetime: Duration,
    /// The page that the link opens.
    pub place: Option<String>,
    /// The name shown to people.
    pub name: Option<String>,
    /// Whether its session may publish events.
    pub may_publish: bool,
}

impl Default for NewPanelLink {
    fn default() -> Self {
        Self { scopes: None, lifetime: LIFETIME, place: None, name: None, may_publish: false }
    }
}

impl NewPanelLink {
    /// Parses a creator's request. An empty body means the defaults.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let mut body = JsonBody::read(body)?;
        let scopes: Option<Vec<String>> = body.optional("scopes", "a list of scopes");
        let scopes = scopes.map(|list| checked_scopes(&list, &mut body.violations));
        let lifetime = optional_lifetime(&mut body);
        let place: Option<String> = body.optional("place", PLACE);
        let name: Option<String> = body.optional("name", "a string with a human-readable name for the link");
        let may_publish = body.optional("mayPublish", "true or false").unwrap_or(false);
        let violations = &mut body.violations;
        let place = place.and_then(|place| violations.note("place", Rule::InvalidFormat, checked_place(&place)));
        let name = name.and_then(|name| violations.note("name", Rule::InvalidFormat, checked_name(&name)));
        body.finish()?;
        Ok(Self { scopes, lifetime: lifetime.unwrap_or(LIFETIME), place, name, may_publish })
    }
}

/// A request's `lifetimeSeconds` member.
pub(super) fn optional_lifetime(body: &mut JsonBody) -> Option<Duration> {
    let wanted = format!("a number of seconds, an integer from {} to {}", LIFETIMES.start(), LIFETIMES.end());
    let seconds: u32 = body.optional("lifetimeSeconds", &wanted)?;
    let checked = checked_lifetime(seconds).ok_or_else(|| format!("must be {wanted}"));
    body.violations.note("lifetimeSeconds", Rule::OutOfRange, checked)
}

/// Checks a session's lifetime in seconds; `None` if it is too short or too long.
pub fn checked_lifetime(seconds: u32) -> Option<Duration> {
    LIFETIMES.contains(&seconds).then(|| Duration::from_secs(seconds.into()))
}

const PLACE: &str = "the path of a panel view, such as `/panel/deliveries?status=failed`, up to 1000 characters";

/// Checks that a string is a panel view's address, optionally with a query. No browser must be able to read it as
/// an address on another site.
///
/// # Errors
/// The fault, as the second half of a sentence that begins with the field's name.
pub fn checked_place(text: &str) -> Result<String, String> {
    let path = text.split_once('?').map_or(text, |(path, _)| path);
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte));
    if views::is_view(path) && is_plain && text.len() <= MAX_PLACE {
        Ok(text.to_owned())
    } else {
        Err(format!("must be {PLACE}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::Violation;

    #[test]
    fn a_link_has_defaults_for_everything_its_maker_leaves_out() {
        for body in ["", " ", "{}"] {
            assert_eq!(NewPanelLink::read(body.as_bytes()).expect(body), NewPanelLink::default(), "{body}");
        }
        let body = r#"{"scopes":["integrations.read"],"lifetimeSeconds":86400,"place":"/panel/deliveries","name":"Ada","mayPublish":true}"#;
        let expected = NewPanelLink {
            scopes: Scopes::parse("integrations.read").ok(),
            lifetime: Duration::from_secs(86_400),
            place: Some("/panel/deliveries".into()),
            name: Some("Ada".into()),
            may_publish: true,
        };
        assert_eq!(NewPanelLink::read(body.as_bytes()).expect(body), expected);
    }

    #[test]
    fn every_value_that_is_not_good_is_named() {
        let body = r#"{"scopes":["integrations.*"],"lifetimeSeconds":86401,"place":"//evil.example","name":""}"#;
        let problem = NewPanelLink::read(body.as_bytes()).expect_err("refused");
        let names: Vec<_> = problem.violations().iter().map(Violation::name).collect();
        assert_eq!(names, ["scopes[0]", "lifetimeSeconds", "place", "name"]);
        for bad in [r#"{"lifetimeSeconds":59}"#, r#"{"scopes":[]}"#, r#"{"lifetime":60}"#, "[]", r#"{"place":null}"#] {
            assert!(NewPanelLink::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_place_is_a_view_of_the_panel_and_never_leads_elsewhere() {
        for good in
            ["/panel", "/panel/deliveries", "/panel?a=/../b", "/panel/deliveries/dlv_1?since=2026-11-20T09:45:00Z"]
        {
            assert_eq!(checked_place(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "//panel",
            "/panel/nothing-of-this-name",
            "/panel//evil.example",
            "/panel/../oauth2",
            "/panel/deliveries/",
            "/panel/deliveries\\evil",
            "/panel/deliveries?a b",
            "/panel/deliveries#code=x",
            "/panel/deliveries?a#code=x",
            "/panel/deliveries?ü",
            "https://evil.example/panel",
            &format!("/panel/deliveries?{}", "x".repeat(1000)),
        ] {
            assert!(checked_place(bad).is_err(), "{bad}");
        }
    }
}
