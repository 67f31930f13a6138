//! The contract's checks on a request, one function each. The gate runs them in the contract's order.

use http::{
    Method, Request,
    header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN},
};
use lambda_http::{Body, RequestExt};
use serde_json::json;

use crate::{ACCEPTED_VERSIONS, SERVICE_VERSION_HEADER, coding, event::UnreadableBody, queries, routes, verbs};
use auth::{AuthorizedEntity, Claims, EntityId, Scope, TokenFault, refusal};
use problem::{Problem, ProblemKind, Query, Rule, Violation, json_body::MAX_BYTES, no_input};

/// The name of the path parameter that holds the managing entity.
const ENTITY_PARAMETER: &str = "managingEntityIdentifier";

/// Checks that the path has this verb. A path without a route passes. A gateway that matches path and verb together
/// takes `DELETE …/webhook/list` for `DELETE …/webhook/{webhookIdentifier}`, even though the path belongs to another
/// route.
pub(crate) fn verb(request: &Request<Body>) -> Result<(), Problem> {
    let allowed = verbs::verbs_of(request.raw_http_path());
    if allowed.is_empty() || allowed.contains(&request.method().as_str()) {
        return Ok(());
    }
    let list = routes::list_of(request.raw_http_path()).filter(|_| request.method().is_safe());
    Err(Problem::wrong_verb(request.method(), &allowed, list.as_deref()))
}

/// Whether this is a browser asking if a script of another origin may read a public document.
pub(crate) fn is_preflight(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS && verbs::is_open(request.raw_http_path())
}

/// Checks that the request comes from the service's site or from a program, which sends no origin.
pub(crate) fn origin(request: &Request<Body>, base_url: &str) -> Result<(), Problem> {
    let mut origins = request.headers().get_all(ORIGIN).iter();
    if origins.all(|origin| origin.as_bytes().eq_ignore_ascii_case(base_url.as_bytes())) {
        return Ok(());
    }
    Err(Problem::new(
        ProblemKind::ForeignOrigin,
        "Scripts from other sites may not call this address; call it from a program.",
    ))
}

/// The request's bearer token, of which there must be exactly one. A token of another scheme counts as missing.
pub(crate) fn token(request: &Request<Body>) -> Result<&str, Problem> {
    let mut values = request.headers().get_all(AUTHORIZATION).iter();
    let token = values.next().and_then(|value| bearer_token(value.to_str().ok()?)).ok_or_else(refusal::no_token)?;
    if values.next().is_none() { Ok(token) } else { Err(refusal::bad_token(TokenFault::Malformed)) }
}

/// The token of `Bearer …`; the scheme's name is case-insensitive (RFC 9110 §11.1).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

/// Checks that the token has the scope.
pub(crate) fn scope(token: &Claims, scope: Scope) -> Result<(), Problem> {
    if token.scopes.contains(scope) { Ok(()) } else { Err(refusal::lacks_scope(scope.into())) }
}

/// Checks that the token covers the managing entity in the path, and returns that entity, if there is one.
pub(crate) fn coverage<'a>(token: &Claims, request: &'a Request<Body>) -> Result<Option<&'a str>, Problem> {
    let entity = entity_in_path(request);
    if entity.is_none_or(|entity| token.entities.cover(entity)) {
        Ok(entity)
    } else {
        Err(refusal::entity_not_covered())
    }
}

/// Checks that the token's application may publish events.
pub(crate) fn right_to_publish(token: &Claims) -> Result<(), Problem> {
    if token.may_publish { Ok(()) } else { Err(refusal::may_not_publish()) }
}

/// The managing entity in the path, unchecked.
pub(crate) fn entity_in_path(request: &Request<Body>) -> Option<&str> {
    request.path_parameters_ref().and_then(|parameters| parameters.first(ENTITY_PARAMETER))
}

/// Checks that the managing entity is well-formed, and returns the proof that the token covers it.
pub(crate) fn entity(token: &Claims, entity: &str) -> Result<AuthorizedEntity, Problem> {
    let entity = EntityId::parse(entity)
        .map_err(|error| Violation::path(ENTITY_PARAMETER, Rule::InvalidFormat, error.to_string()))?;
    token.authorize(entity).ok_or_else(refusal::entity_not_covered)
}

/// Checks that the query is empty, unless the operation takes one.
pub(crate) fn no_query(request: &Request<Body>) -> Result<(), Problem> {
    let takes_query = routes::route_of(request.raw_http_path())
        .is_some_and(|route| queries::takes_query(request.method().as_str(), route));
    if takes_query {
        return Ok(());
    }
    let parameters = request.query_string_parameters_ref();
    Query::new(parameters.into_iter().flat_map(|parameters| parameters.iter())).finish()
}

/// Checks that the body of a DELETE is absent or has no members, since no removal takes input.
pub(crate) fn no_input_of_removal(request: &Request<Body>) -> Result<(), Problem> {
    if request.method() != Method::DELETE {
        return Ok(());
    }
    if request.body().len() > MAX_BYTES {
        return Err(Violation::whole_body(Rule::TooLong, "must be omitted").into());
    }
    no_input(request.body())
}

/// Checks that the version is absent or supported.
pub(crate) fn version(request: &Request<Body>) -> Result<(), Problem> {
    let mut versions = request.headers().get_all(SERVICE_VERSION_HEADER).iter();
    match (versions.next(), versions.next()) {
        (None, _) => Ok(()),
        (Some(version), None) if ACCEPTED_VERSIONS.iter().any(|accepted| version == accepted) => Ok(()),
        _ => Err(unsupported_version()),
    }
}

fn unsupported_version() -> Problem {
    let detail = format!(
        "Omit the header Service-Version, or send one of these versions: \
                          {}.",
        ACCEPTED_VERSIONS.join(", ")
    );
    Problem::new(ProblemKind::UnsupportedVersion, detail).with_property("supportedVersions", json!(ACCEPTED_VERSIONS))
}

/// Checks that the media type of a body is JSON. A request without a body passes, since some clients send a media type
/// anyway: the handler reports the missing members.
pub(crate) fn media_type(request: &Request<Body>) -> Result<(), Problem> {
    if request.body().is_empty() {
        return Ok(());
    }
    // A parameter may contain non-ASCII bytes.
    let value = request.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let media_type = value.as_deref().and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Problem::not_json()) }
}

/// Checks that the body has no content coding, since this service decodes none (RFC 9110 §8.4).
pub(crate) fn not_encoded(request: &Request<Body>) -> Result<(), Problem> {
    let encoded = !request.body().is_empty() && coding::is_encoded(request.headers());
    if encoded { Err(Problem::encoded_body()) } else { Ok(()) }
}

/// Checks that the body could be read from the event.
pub(crate) fn readable_body(request: &Request<Body>) -> Result<(), Problem> {
    if request.extensions().get::<UnreadableBody>().is_none() {
        return Ok(());
    }
    let detail = "must be valid Base64, because the request is marked as Base64";
    Err(Violation::whole_body(Rule::InvalidFormat, detail).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::CONTENT_ENCODING;
    use lambda_http::aws_lambda_events::query_map::QueryMap;

    #[test]
    fn a_body_has_no_content_coding_but_identity() {
        let with = |values: &[&str], body: &str| {
            let mut request = Request::new(Body::from(body));
            for value in values {
                request.headers_mut().append(CONTENT_ENCODING, value.parse().expect("a value"));
            }
            not_encoded(&request)
        };
        for good in [&[][..], &["identity"], &["Identity"], &[""], &["identity, identity"]] {
            assert!(with(good, "{}").is_ok(), "{good:?}");
        }
        for bad in [&["gzip"][..], &["x-gzip"], &["br"], &["identity, gzip"], &["identity", "deflate"], &["utf-8"]] {
            assert_eq!(with(bad, "{}").expect_err("encoded").kind, ProblemKind::UnsupportedMediaType, "{bad:?}");
            assert!(with(bad, "").is_ok(), "there is no body: {bad:?}");
        }
    }

    #[test]
    fn a_body_that_could_not_be_read_is_a_problem() {
        let mut request = Request::new(Body::Empty);
        assert!(readable_body(&request).is_ok());
        request.extensions_mut().insert(UnreadableBody);
        assert_eq!(readable_body(&request).expect_err("refused").violations()[0].name(), "body");
    }

    #[test]
    fn a_verb_of_another_route_is_refused_with_the_verbs_of_the_path() {
        let with = |method: &str, id: &str| {
            let path = format!("/api/managing-entity/hotel/webhook/{id}");
            let mut request = Request::new(Body::Empty).with_raw_http_path(&path);
            *request.method_mut() = method.parse().expect("a verb");
            verb(&request)
        };
        assert!(with("DELETE", "whk_1").is_ok() && with("GET", "list").is_ok() && with("DELETE", "").is_ok());
        for name in ["list", "lis%74"] {
            let refused = with("DELETE", name).expect_err("another path");
            assert_eq!(refused.kind, ProblemKind::MethodNotAllowed);
            assert_eq!(refused.headers[0].1, "GET, HEAD");
        }
    }

    #[test]
    fn an_operation_without_parameters_refuses_every_query() {
        let with = |verb: &str, rest: &str, query: &str| {
            let mut request = Request::new(Body::Empty)
                .with_raw_http_path(format!("/api/managing-entity/hotel/{rest}"))
                .with_query_string_parameters(query.parse::<QueryMap>().expect("a query"));
            *request.method_mut() = verb.parse().expect("a verb");
            no_query(&request).map_err(|problem| problem.violations().iter().map(Violation::name).collect::<Vec<_>>())
        };
        for verb in ["GET", "HEAD"] {
            assert_eq!(with(verb, "webhook/list", ""), Ok(()));
            let refused = with(verb, "webhook/list", "enabled=false&limit=1&enabled=true");
            assert_eq!(refused, Err(vec!["enabled".to_owned(), "limit".to_owned()]));
            assert_eq!(with(verb, "webhook/delivery/list", "any=1"), Ok(()), "its handler refuses unknown parameters");
        }
        assert_eq!(with("DELETE", "application/app1", "confirm=true"), Ok(()));
        assert_eq!(with("PATCH", "webhook/whk_1", "confirm=true"), Err(vec!["confirm".to_owned()]));
        assert_eq!(with("DELETE", "webhook/whk_1", "confirm=true"), Err(vec!["confirm".to_owned()]));
    }

    #[test]
    fn a_removal_refuses_a_body_with_members() {
        let with = |method: Method, body: &str| {
            let mut request = Request::new(Body::from(body));
            *request.method_mut() = method;
            let checked = no_input_of_removal(&request);
            checked.map_err(|problem| problem.violations().iter().map(Violation::name).collect::<Vec<_>>())
        };
        for good in ["", " \n", "{}", "{ }"] {
            assert_eq!(with(Method::DELETE, good), Ok(()), "{good}");
        }
        assert_eq!(with(Method::DELETE, r#"{"version":3}"#), Err(vec!["version".to_owned()]));
        for bad in ["[]", &" ".repeat(MAX_BYTES + 1)] {
            assert_eq!(with(Method::DELETE, bad), Err(vec!["body".to_owned()]), "{bad:.9}");
        }
        assert_eq!(with(Method::PATCH, r#"{"version":3}"#), Ok(()), "its handler reads the body");
    }

    #[test]
    fn only_options_of_an_open_document_is_a_preflight() {
        let with = |method: Method, path: &str| {
            let mut request = Request::new(Body::Empty).with_raw_http_path(path);
            *request.method_mut() = method;
            (verb(&request).is_ok(), is_preflight(&request))
        };
        assert_eq!(with(Method::OPTIONS, "/openapi.json"), (true, true));
        assert_eq!(with(Method::GET, "/openapi.json"), (true, false));
        assert_eq!(with(Method::OPTIONS, "/mcp"), (false, false));
        assert_eq!(with(Method::OPTIONS, "/no/route"), (true, false));
    }

    #[test]
    fn the_scheme_of_a_bearer_token_is_case_insensitive() {
        assert_eq!(bearer_token("Bearer abc"), Some("abc"));
        assert_eq!(bearer_token("bEARER  abc"), Some("abc"));
        assert_eq!(bearer_token("Bearer"), Some(""));
        assert_eq!(bearer_token("Basic abc"), None);
        assert_eq!(bearer_token("Bearerabc"), None);
    }

    #[test]
    fn a_script_of_another_origin_is_refused_and_a_program_is_not() {
        let with = |origins: &[&str]| {
            let mut request = Request::new(Body::Empty);
            for value in origins {
                request.headers_mut().append(ORIGIN, value.parse().expect("a value"));
            }
            origin(&request, "https://api.example.com").is_ok()
        };
        assert!(with(&[]) && with(&["https://api.example.com"]) && with(&["https://API.example.com"]));
        for bad in [
            "",
            "null",
            "http://api.example.com",
            "https://api.example.com:8443",
            "https://api.example.com.evil.example",
        ] {
            assert!(!with(&[bad]), "{bad}");
        }
        assert!(!with(&["https://api.example.com", "https://evil.example"]));
    }

    #[test]
    fn the_version_is_absent_or_supported() {
        let with = |values: &[&str]| {
            let mut request = Request::new(Body::Empty);
            for value in values {
                request.headers_mut().append(SERVICE_VERSION_HEADER, value.parse().expect("a value"));
            }
            version(&request).is_ok()
        };
        assert!(with(&[]) && with(&["2.0"]) && with(&["2.0.0"]));
        assert!(!with(&[""]) && !with(&["2"]) && !with(&["1.0"]) && !with(&["2.0", "2.0"]) && !with(&["2.0,2.0"]));
    }

    #[test]
    fn a_body_is_json_by_its_media_type_with_any_parameters() {
        let with = |value: Option<&str>, body: &str| {
            let mut request = Request::new(Body::from(body));
            if let Some(value) = value {
                request.headers_mut().insert(CONTENT_TYPE, value.parse().expect("a value"));
            }
            media_type(&request).is_ok()
        };
        assert!(with(Some("application/json"), "{}") && with(Some("Application/JSON; charset=utf-8"), "{}"));
        assert!(with(Some("application/json; title=José"), "{}"));
        assert!(!with(None, "{}") && !with(Some("text/plain"), " ") && !with(Some("application/jsonp"), "{}"));
        let of_curl = Some("application/x-www-form-urlencoded");
        assert!(with(None, "") && with(of_curl, ""), "there is no body");
    }
}
