//! Templates in a description, with placeholders such as `Client {clientSecret}`.

use serde::Deserialize;

/// A string with placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Place(Placeholder),
}

/// A placeholder in a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    ClientId,
    ClientSecret,
    AccessToken,
    RefreshToken,
    Account,
    /// This service's host, where people return from the provider.
    OwnHost,
}

/// A string with an unknown or unclosed placeholder.
#[derive(Debug, thiserror::Error)]
#[error("not a string with placeholders such as {{clientId}}")]
pub struct TemplateError;

impl Placeholder {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "clientId" => Self::ClientId,
            "clientSecret" => Self::ClientSecret,
            "accessToken" => Self::AccessToken,
            "refreshToken" => Self::RefreshToken,
            "account" => Self::Account,
            "ownHost" => Self::OwnHost,
            _ => return None,
        })
    }
}

impl Template {
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or(TemplateError)?;
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            parts.push(Part::Place(Placeholder::named(name).ok_or(TemplateError)?));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// A template consisting of only this placeholder.
    pub fn only(place: Placeholder) -> Self {
        Self(vec![Part::Place(place)])
    }

    /// The text with its placeholders filled; `None` if one of them has no value.
    pub fn fill<'a>(&'a self, value: impl Fn(Placeholder) -> Option<&'a str>) -> Option<String> {
        let part = |part: &'a Part| match part {
            Part::Literal(text) => Some(text.as_str()),
            Part::Place(place) => value(*place),
        };
        self.0.iter().map(part).collect()
    }

    /// Whether all of the template's placeholders are allowed.
    pub fn has_only(&self, allowed: &[Placeholder]) -> bool {
        self.0.iter().all(|part| match part {
            Part::Literal(_) => true,
            Part::Place(place) => allowed.contains(place),
        })
    }

    /// Whether the template has this placeholder.
    pub fn has(&self, place: Placeholder) -> bool {
        self.0.contains(&Part::Place(place))
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_a_missing_value_gives_no_text() {
        let template = Template::parse("Client {clientSecret}/{account}!").expect("a template");
        let filled = template.fill(|place| match place {
            Placeholder::ClientSecret => Some("{account}"),
            Placeholder::Account => Some("acct_1"),
            _ => None,
        });
        assert_eq!(filled.as_deref(), Some("Client {account}/acct_1!"));
        assert_eq!(template.fill(|place| (place == Placeholder::Account).then_some("x")), None);
    }

    #[test]
    fn an_unknown_or_unclosed_placeholder_is_refused() {
        for bad in ["{", "{clientId", "{secret}", "{}", "a{{clientId}}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
        assert!(Template::parse("").expect("empty").has_only(&[]));
    }
}
