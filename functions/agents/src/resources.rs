//! Resources that agents read by address: the catalogue of event types, deliveries, and explanations of Problems.

use std::borrow::Cow;

use auth::Scope;
use base::DeliveryId;
use percent_encoding::percent_decode_str;
use problem::{Problem, ProblemKind};
use serde::Serialize;
use serde_json::json;
use webhooks::{deliveries::DeliveryError, events::catalogue};

use crate::{caller::Caller, selection::Selection, tool::Tool, tools, use_cases::UseCases};

const CATALOGUE: &str = "waypost://catalogue/events";
const PROBLEMS: &str = "waypost://problems";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// A resource in the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The resource's address.
    pub uri: &'static str,
    /// The name for programs.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// The description for models.
    pub description: &'static str,
    /// The media type of its content.
    pub mime_type: &'static str,
}

/// A family of resources that are too many to list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The template of their addresses (RFC 6570).
    pub uri_template: &'static str,
    /// The name for programs.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// The description for models.
    pub description: &'static str,
    /// The media type of their content.
    pub mime_type: &'static str,
    /// An address of this form.
    #[serde(skip)]
    example: &'static str,
}

/// A resource's content.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// The resource's address, as requested.
    pub uri: String,
    /// The content's media type.
    pub mime_type: &'static str,
    /// The content.
    pub text: String,
}

/// The listed resources. They are listed even if the token lacks their scopes; a refusal names the missing scopes.
pub const ALL: &[Resource] = &[
    Resource {
        uri: CATALOGUE,
        name: "event_types",
        title: "Event types",
        description: "Every event type that a webhook can subscribe to, with its key (`value`) and its display name \
                      (`label`).",
        mime_type: JSON,
    },
    Resource {
        uri: PROBLEMS,
        name: "problems",
        title: "Kinds of errors",
        description: "Every kind of error (Problem) of this service, and the address of the page that explains it.",
        mime_type: MARKDOWN,
    },
];

/// The templates.
pub const TEMPLATES: &[ResourceTemplate] = &[
    ResourceTemplate {
        uri_template: "waypost://{managingEntity}/delivery/{deliveryIdentifier}",
        name: "delivery",
        title: "A delivery",
        description: "One event on its way to one webhook, with its last attempts, as in `show_delivery`.",
        mime_type: JSON,
        example: "waypost://demo-hotel/delivery/dlv_01m7w5gmev32p3wwt3y0b8j32h",
    },
    ResourceTemplate {
        uri_template: "waypost://problems/{kind}",
        name: "problem",
        title: "A kind of error",
        description: "The meaning of an error `kind`, and how to fix it.",
        mime_type: MARKDOWN,
        example: "waypost://problems/not-found",
    },
];

/// The target of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address<'a> {
    Catalogue,
    Problems,
    Problem(ProblemKind),
    Delivery { entity: Cow<'a, str>, delivery: Cow<'a, str> },
}

impl<'a> Address<'a> {
    fn parse(uri: &'a str) -> Option<Self> {
        let decoded = |part: &'a str| percent_decode_str(part).decode_utf8().ok();
        match uri.strip_prefix("waypost://")?.split('/').collect::<Vec<_>>().as_slice() {
            ["catalogue", "events"] => Some(Self::Catalogue),
            ["problems"] => Some(Self::Problems),
            ["problems", kind] => ProblemKind::of_slug(kind).map(Self::Problem),
            [entity, "delivery", delivery] => {
                Some(Self::Delivery { entity: decoded(entity)?, delivery: decoded(delivery)? })
            }
            _ => None,
        }
    }
}

/// The tool that shows the same content as the resource at this address. A client that hides the tool must not get the
/// resource either.
fn tool(address: &Address<'_>) -> &'static Tool {
    match address {
        Address::Catalogue => &tools::LIST_EVENT_TYPES,
        Address::Problems | Address::Problem(_) => &tools::EXPLAIN_PROBLEM,
        Address::Delivery { .. } => &tools::SHOW_DELIVERY,
    }
}

/// Whether the client selects the tool that shows the resource at this address; `false` for an unknown address.
pub fn is_selected(uri: &str, selection: &Selection) -> bool {
    Address::parse(uri).is_some_and(|address| selection.has(tool(&address)))
}

/// The listed resources whose tools the client selects.
pub fn listed(selection: &Selection) -> impl Iterator<Item = &'static Resource> {
    ALL.iter().filter(|resource| is_selected(resource.uri, selection))
}

/// The templates whose tools the client selects.
pub fn listed_templates(selection: &Selection) -> impl Iterator<Item = &'static ResourceTemplate> {
    TEMPLATES.iter().filter(|template| is_selected(template.example, selection))
}

/// The scopes that the resource at this address needs in addition to `mcp.read`.
pub fn scopes(uri: &str) -> &'static [Scope] {
    match Address::parse(uri) {
        Some(Address::Catalogue | Address::Delivery { .. }) => &[Scope::IntegrationsRead],
        Some(Address::Problems | Address::Problem(_)) | None => &[],
    }
}

/// The content of the resource at this address; `None` if there is none.
///
/// # Errors
/// The Problem of the corresponding endpoint.
pub async fn read(use_cases: &UseCases, caller: &Caller, uri: &str) -> Result<Option<Contents>, Problem> {
    let Some(address) = Address::parse(uri) else { return Ok(None) };
    let (mime_type, text) = match address {
        Address::Catalogue => (JSON, json!({ "eventTypes": catalogue::all() }).to_string()),
        Address::Problems => (MARKDOWN, problems()),
        Address::Problem(kind) => (MARKDOWN, explanation(kind)),
        Address::Delivery { entity, delivery } => (JSON, delivered(use_cases, caller, &entity, &delivery).await?),
    };
    Ok(Some(Contents { uri: uri.to_owned(), mime_type, text }))
}

async fn delivered(use_cases: &UseCases, caller: &Caller, entity: &str, delivery: &str) -> Result<String, Problem> {
    let entity = caller.entity(Some(entity))?;
    let delivery = DeliveryId::parse(delivery).ok_or(DeliveryError::NotFound)?;
    let shown = tools::delivery(use_cases, &entity, &delivery, caller).await?;
    Ok(tools::SHOW_DELIVERY.shown(shown).to_string())
}

fn problems() -> String {
    let line =
        |kind: &ProblemKind| format!("- {PROBLEMS}/{} ({}): {}\n", kind.slug(), kind.status().as_u16(), kind.title());
    ProblemKind::ALL.iter().map(line).collect()
}

fn explanation(kind: ProblemKind) -> String {
    let slug = kind.slug();
    let status = kind.status().as_u16();
    let title = kind.title();
    format!("# {title}\n\nProblem `{slug}`, HTTP status {status}.\n\n{}\n", kind.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery<'a>(entity: &'a str, delivery: &'a str) -> Option<Address<'a>> {
        Some(Address::Delivery { entity: entity.into(), delivery: delivery.into() })
    }

    #[test]
    fn every_listed_address_has_a_resource() {
        for resource in ALL {
            assert!(Address::parse(resource.uri).is_some(), "{}", resource.uri);
        }
        for line in problems().lines() {
            let uri = line.split(' ').nth(1).expect("an address");
            assert!(matches!(Address::parse(uri), Some(Address::Problem(_))), "{line}");
        }
        for template in TEMPLATES {
            let uri = template.uri_template.replace("{kind}", "not-found");
            let uri = uri.replace("{managingEntity}", "demo-hotel");
            let uri = uri.replace("{deliveryIdentifier}", "dlv_01m7w5gmev32p3wwt3y0b8j32h");
            assert_eq!(uri, template.example);
            assert!(Address::parse(&uri).is_some(), "{uri}");
        }
    }

    #[test]
    fn a_resource_is_offered_with_the_tool_that_shows_it() {
        let offered = |name: &'static str, value: &str| {
            let headers = [(name.parse().expect("a name"), value.parse().expect("a value"))].into_iter().collect();
            let selection = Selection::of(&headers).expect("a selection");
            let resources = listed(&selection).map(|resource| resource.name);
            resources.chain(listed_templates(&selection).map(|template| template.name)).collect::<Vec<_>>()
        };
        let all = ["event_types", "problems", "delivery", "problem"];
        assert_eq!(offered("x-other", ""), all);
        assert_eq!(offered("x-mcp-readonly", "true"), all, "resources change nothing");
        for (tools, names) in [
            ("list_webhooks", &[][..]),
            ("list_event_types", &["event_types"]),
            ("explain_problem, list_deliveries", &["problems", "problem"]),
            ("show_delivery", &["delivery"]),
            ("show_deliver", &[]),
        ] {
            assert_eq!(offered("x-mcp-tools", tools), names, "{tools}");
        }
        let everything = Selection::default();
        assert!(is_selected("waypost://a%3Ab/delivery/x", &everything) && !is_selected("waypost://x", &everything));
    }

    #[test]
    fn a_resource_needs_the_scopes_of_its_tool() {
        for uri in ALL.iter().map(|resource| resource.uri).chain(TEMPLATES.iter().map(|template| template.example)) {
            let address = Address::parse(uri).expect("an address");
            assert_eq!(scopes(uri), tool(&address).scopes, "{uri}");
        }
    }

    #[test]
    fn a_delivery_address_has_its_entity_and_identifier() {
        assert_eq!(Address::parse("waypost://hotel/delivery/dlv_1"), delivery("hotel", "dlv_1"));
        assert_eq!(Address::parse("waypost://a%3Ab%40c/delivery/dlv_1"), delivery("a:b@c", "dlv_1"));
        // An entity may have the same name as a part of another address.
        assert_eq!(Address::parse("waypost://problems/delivery/dlv_1"), delivery("problems", "dlv_1"));
    }

    #[test]
    fn any_other_address_has_no_resource_and_needs_no_scope() {
        for uri in [
            "",
            "waypost://",
            "waypost://catalogue",
            "waypost://catalogue/events/",
            "https://catalogue/events",
            "waypost://problems/nothing",
            "waypost://hotel/webhook/whk_1",
            "waypost://hotel/delivery/dlv_1/x",
            "waypost://%ff/delivery/dlv_1",
        ] {
            assert_eq!(Address::parse(uri), None, "{uri}");
            assert!(scopes(uri).is_empty(), "{uri}");
        }
    }
}
