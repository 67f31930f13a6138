//! The template's routes, matched by method and path as in API Gateway. A literal path segment takes precedence over a
//! parameter, and a parameter over a greedy one (`{name+}`), which matches the rest of the path.

use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;
use template::Template;

/// All routes, in order of precedence.
pub struct Routes {
    routes: Vec<Route>,
    unmatched: Route,
}

/// One route and its function.
pub struct Route {
    /// The route as API Gateway writes it: method and path, or `$default`.
    pub key: String,
    pub function: String,
    method: String,
    segments: Vec<Segment>,
}

/// The kinds of path segments, in order of precedence, highest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Literal(String),
    Parameter(String),
    Greedy(String),
}

impl Routes {
    pub fn new(template: &Template) -> Self {
        let mut routes: Vec<Route> = template
            .routes()
            .into_iter()
            .map(|route| Route {
                key: format!("{} {}", route.method, route.path),
                segments: route.path.split('/').skip(1).map(Segment::read).collect(),
                function: route.function,
                method: route.method,
            })
            .collect();
        routes.sort_by(|one, other| one.segments.cmp(&other.segments));
        let unmatched = template.functions().iter().find(|function| function.answers_unmatched);
        Self {
            routes,
            unmatched: Route {
                key: "$default".to_owned(),
                // If the template has no fallback, the invocation fails, since this function does not exist.
                function: unmatched.map_or_else(|| "$default".to_owned(), |function| function.name.clone()),
                method: String::new(),
                segments: Vec::new(),
            },
        }
    }

    /// A request's route, and the decoded path parameters.
    pub fn find(&self, method: &Method, path: &str) -> (&Route, BTreeMap<String, String>) {
        let segments: Vec<String> = path.split('/').skip(1).map(decoded).collect();
        self.routes
            .iter()
            .filter(|route| route.method == method.as_str())
            .find_map(|route| Some((route, route.parameters(&segments)?)))
            .unwrap_or_else(|| (&self.unmatched, BTreeMap::new()))
    }
}

/// The path as functions receive it: decoded, except for encoded slashes, which do not separate segments.
pub fn raw_path(path: &str) -> String {
    path.split('/').map(|segment| decoded(segment).replace('/', "%2F")).collect::<Vec<_>>().join("/")
}

fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

impl Route {
    fn parameters(&self, path: &[String]) -> Option<BTreeMap<String, String>> {
        let is_greedy = matches!(self.segments.last(), Some(Segment::Greedy(_)));
        if self.segments.len() != path.len() && !(is_greedy && self.segments.len() < path.len()) {
            return None;
        }
        let mut parameters = BTreeMap::new();
        for (position, (segment, given)) in self.segments.iter().zip(path).enumerate() {
            match segment {
                Segment::Literal(literal) if literal == given => {}
                Segment::Greedy(name) if !given.is_empty() => {
                    parameters.insert(name.clone(), path[position..].join("/"));
                }
                Segment::Parameter(name) if !given.is_empty() => {
                    parameters.insert(name.clone(), given.clone());
                }
                _ => return None,
            }
        }
        Some(parameters)
    }
}

impl Segment {
    fn read(text: &str) -> Self {
        match text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            Some(name) => match name.strip_suffix('+') {
                Some(name) => Self::Greedy(name.to_owned()),
                None => Self::Parameter(name.to_owned()),
            },
            None => Self::Literal(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes {
        let function = |name: &str, events: &str| {
            format!(
                "  {name}: {{Type: AWS::Serverless::Function, Properties: {{CodeUri: target/lambda/{name}, Timeout: 1, MemorySize: 256, Events: {{E: {{Type: HttpApi, Properties: {{{events}}}}}}}}}}}\n"
            )
        };
        let template = "Resources:\n".to_owned()
            + &function("show", "Method: GET, Path: '/hook/{id}'")
            + &function("list", "Method: GET, Path: /hook/list")
            + &function("change", "Method: POST, Path: '/hook/{id}/secret'")
            + &function("pages", "Method: GET, Path: '/page/{page+}'")
            + &function("page", "Method: GET, Path: '/page/of/{name}'")
            + &function("rest", "ApiId: x");
        Routes::new(&Template::parse(&template).expect("well formed"))
    }

    fn found(method: Method, path: &str) -> (String, BTreeMap<String, String>) {
        let routes = routes();
        let (route, parameters) = routes.find(&method, path);
        (route.function.clone(), parameters)
    }

    #[test]
    fn a_literal_segment_wins_over_a_parameter() {
        assert_eq!(found(Method::GET, "/hook/list").0, "list");
        assert_eq!(found(Method::GET, "/hook/lists").0, "show");
    }

    #[test]
    fn a_greedy_parameter_takes_the_rest_of_a_path_as_a_last_resort() {
        for page in ["a", "a/b", "of", "of/a/b"] {
            let (function, parameters) = found(Method::GET, &format!("/page/{page}"));
            assert_eq!((function.as_str(), parameters["page"].as_str()), ("pages", page));
        }
        assert_eq!(found(Method::GET, "/page/of/a").0, "page");
        for none in ["/page", "/page/", "/page//a"] {
            assert_eq!(found(Method::GET, none).0, "rest", "{none}");
        }
    }

    #[test]
    fn parameters_are_decoded_and_never_empty() {
        let (function, parameters) = found(Method::GET, "/hook/a%2Fb%20c");
        assert_eq!((function.as_str(), parameters["id"].as_str()), ("show", "a/b c"));
        assert_eq!(found(Method::GET, "/hook/").0, "rest");
    }

    #[test]
    fn equivalent_spellings_match_and_an_encoded_slash_separates_nothing() {
        assert_eq!(found(Method::GET, "/hook/%6Cist").0, "list");
        assert_eq!(found(Method::GET, "/hook%2Flist").0, "rest");
        assert_eq!(raw_path("/hook%2Flist/%6Cist"), "/hook%2Flist/list");
    }

    #[test]
    fn everything_else_goes_to_the_fallback() {
        for (method, path) in [
            (Method::POST, "/hook/list"),
            (Method::HEAD, "/hook/list"),
            (Method::GET, "/"),
            (Method::GET, "/hook/list/"),
            (Method::GET, "/HOOK/list"),
            (Method::GET, "/hook/x/secret"),
        ] {
            assert_eq!(found(method, path), ("rest".to_owned(), BTreeMap::new()), "{path}");
        }
    }
}
