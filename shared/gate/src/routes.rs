//! The routes in template.yaml, and the verbs of a path.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The routes: verb and path.
const ROUTES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/routes.rs"));

/// The routes with the verb GET: path and function.
const GETS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/gets.rs"));

/// The verbs of all routes with this path, in the order of the routes; empty if there are none. A parameter (`{name}`)
/// matches one segment that is not empty, and a literal segment takes precedence over it. The last parameter may be
/// greedy (`{name+}`) and match several segments; every other route takes precedence over it.
pub(crate) fn verbs_of(path: &str) -> Vec<&'static str> {
    verbs_among(ROUTES, path)
}

/// A path's route, as template.yaml declares it, such as `…/webhook/{webhookIdentifier}`; `None` if no route matches. A
/// function with several routes selects the operation by this route.
pub fn route_of(path: &str) -> Option<&'static str> {
    nearest_among(ROUTES, &decoded_segments(path))
}

/// The functions that have a route with the verb GET and this path.
pub(crate) fn functions_of_get(path: &str) -> impl Iterator<Item = &'static str> {
    let segments =
        decoded_segments(path).into_iter().map(Cow::into_owned).map(Cow::Owned).collect::<Vec<Cow<'static, str>>>();
    GETS.iter().filter(move |(route, _)| matches(route, &segments)).map(|(_, function)| *function)
}

/// The nearest list above a path, such as `…/webhook/list` for `…/webhook/whk_1`; `None` if there is none.
pub fn list_of(path: &str) -> Option<String> {
    list_among(ROUTES, path)
}

fn list_among(routes: &[(&'static str, &str)], path: &str) -> Option<String> {
    let ends = path.match_indices('/').map(|(end, _)| end).rev();
    ends.map(|end| format!("{}/list", &path[..end])).find(|list| {
        let segments = decoded_segments(list);
        // Only a literal `/list` counts, not a resource with the identifier `list`.
        routes.iter().any(|(verb, route)| *verb == "GET" && route.ends_with("/list") && matches(route, &segments))
    })
}

fn verbs_among(routes: &[(&'static str, &'static str)], path: &str) -> Vec<&'static str> {
    let segments = decoded_segments(path);
    let Some(nearest) = nearest_among(routes, &segments).map(kinds) else { return Vec::new() };
    let matching = routes.iter().filter(|(_, route)| matches(route, &segments));
    matching.filter(|(_, route)| kinds(route) == nearest).map(|(verb, _)| *verb).collect()
}

/// The most literal route that matches the segments.
fn nearest_among(routes: &[(&'static str, &'static str)], segments: &[Cow<'_, str>]) -> Option<&'static str> {
    routes.iter().map(|(_, route)| *route).filter(|route| matches(route, segments)).min_by_key(|route| kinds(route))
}

/// The kinds of a route's segments. Of several routes, the smallest is the most literal.
fn kinds(route: &str) -> Vec<Segment> {
    route.split('/').map(Segment::of).collect()
}

/// The kind of a route's segment, the most literal first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    /// Matches itself.
    Literal,
    /// Matches any segment.
    Parameter,
    /// Matches the rest of the path.
    Greedy,
}

impl Segment {
    fn of(text: &str) -> Self {
        match (text.starts_with('{'), text.ends_with("+}")) {
            (true, true) => Self::Greedy,
            (true, false) => Self::Parameter,
            (false, _) => Self::Literal,
        }
    }
}

fn matches(route: &str, segments: &[Cow<'_, str>]) -> bool {
    let mut wanted = route.split('/');
    let mut given = segments.iter();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(name), Some(segment)) if Segment::of(name) != Segment::Literal => {
                if segment.is_empty() {
                    return false;
                }
                if Segment::of(name) == Segment::Greedy {
                    return true;
                }
            }
            (Some(fixed), Some(segment)) if fixed == segment => {}
            _ => return false,
        }
    }
}

/// A path's segments, decoded once rather than for each route.
fn decoded_segments(path: &str) -> Vec<Cow<'_, str>> {
    path.split('/').map(decoded).collect()
}

/// The decoded segment, since a gateway compares decoded segments.
fn decoded(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_without_its_own_route_is_found_in_the_nearest_list() {
        let routes = [("DELETE", "/e/{x}/pay/{name}/link"), ("GET", "/e/{x}/pay/list"), ("POST", "/e/{x}/list")];
        assert_eq!(list_among(&routes, "/e/1/pay/stripe/link").as_deref(), Some("/e/1/pay/list"));
        assert_eq!(list_among(&routes, "/e/1/else"), None, "a list that GET does not give is none");
        assert_eq!(
            list_of("/api/managing-entity/h/payment/provider/stripe/connection").as_deref(),
            Some("/api/managing-entity/h/payment/provider/list")
        );
        assert_eq!(
            list_of("/api/managing-entity/h/webhook/event/type/booking.created").as_deref(),
            Some("/api/managing-entity/h/webhook/event/list")
        );
        for path in ["/panel/session", "/panel/provider/demo", "/problems/not-found"] {
            assert_eq!(list_of(path), None, "{path}: a resource with the name `list` is no list");
        }
    }

    #[test]
    fn a_path_leads_to_the_most_literal_route() {
        let list = "/api/managing-entity/{managingEntityIdentifier}/webhook/list";
        for path in ["/api/managing-entity/h/webhook/list", "/api/managing-entity/h/%77ebhook/list"] {
            assert_eq!(route_of(path), Some(list), "{path}");
        }
        let one = "/api/managing-entity/{managingEntityIdentifier}/webhook/{webhookIdentifier}";
        assert_eq!(route_of("/api/managing-entity/h/webhook/lists"), Some(one));
        assert_eq!(route_of("/api/managing-entity/h/nothing"), None);
    }

    const ROUTES: &[(&str, &str)] =
        &[("GET", "/a/{x}/b"), ("POST", "/a/{x}/b"), ("GET", "/a/c/d"), ("PATCH", "/a/{x}/e"), ("DELETE", "/a/c/e")];

    #[test]
    fn a_greedy_parameter_matches_paths_of_no_other_route() {
        let routes = [("GET", "/p"), ("GET", "/p/{page+}"), ("POST", "/p/session"), ("HEAD", "/p/pay/{name}")];
        assert_eq!(verbs_among(&routes, "/p"), ["GET"]);
        assert_eq!(verbs_among(&routes, "/p/a"), ["GET"]);
        assert_eq!(verbs_among(&routes, "/p/a/b//c"), ["GET"]);
        assert_eq!(verbs_among(&routes, "/p/session"), ["POST"]);
        assert_eq!(verbs_among(&routes, "/p/pay/x"), ["HEAD"]);
        assert_eq!(verbs_among(&routes, "/p/{page+}/a"), ["GET"], "braces are characters as others are");
        assert!(verbs_among(&routes, "/p/").is_empty());
    }

    #[test]
    fn a_path_has_the_verbs_of_its_routes() {
        assert_eq!(verbs_among(ROUTES, "/a/1/b"), ["GET", "POST"]);
        assert_eq!(verbs_among(ROUTES, "/a/c/d"), ["GET"]);
        assert_eq!(verbs_among(ROUTES, "/a/%63/d"), ["GET"], "an encoded name is the same name");
        assert_eq!(verbs_among(ROUTES, "/a/c/b"), ["GET", "POST"]);
        assert_eq!(verbs_among(ROUTES, "/a/c/e"), ["DELETE"]);
        assert_eq!(verbs_among(ROUTES, "/a/d/e"), ["PATCH"]);
        for none in ["", "/", "/a", "/a//b", "/a/1/b/", "/A/1/b", "/a/1/b/c", "a/1/b"] {
            assert!(verbs_among(ROUTES, none).is_empty(), "{none}");
        }
    }
}
