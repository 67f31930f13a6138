//! Matching a path against routes as template.yaml declares them, for those requests that the gateway found no route for.

/// The verbs of all routes with this path, in the order of the routes; none when no route has it. A parameter
/// (`{name}`) stands for one segment that is not empty, and a segment that is spelt out wins over one.
pub fn verbs_of(routes: &[(&'static str, &str)], path: &str) -> Vec<&'static str> {
    let matching = || routes.iter().filter(|(_, route)| matches(route, path));
    let Some(nearest) = matching().map(|(_, route)| parameters(route)).min() else { return Vec::new() };
    matching().filter(|(_, route)| parameters(route) == nearest).map(|(verb, _)| *verb).collect()
}

/// For each segment, whether it is a parameter. The least of several routes is the most literal.
fn parameters(route: &str) -> Vec<bool> {
    route.split('/').map(|segment| segment.starts_with('{')).collect()
}

fn matches(route: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (route.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(name), Some(segment)) if name.starts_with('{') => {
                if segment.is_empty() {
                    return false;
                }
            }
            (Some(fixed), Some(segment)) if fixed == segment => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &[(&str, &str)] =
        &[("GET", "/a/{x}/b"), ("POST", "/a/{x}/b"), ("GET", "/a/c/d"), ("PATCH", "/a/{x}/e"), ("DELETE", "/a/c/e")];

    #[test]
    fn a_path_has_the_verbs_of_its_routes() {
        assert_eq!(verbs_of(ROUTES, "/a/1/b"), ["GET", "POST"]);
        assert_eq!(verbs_of(ROUTES, "/a/c/d"), ["GET"]);
        assert_eq!(verbs_of(ROUTES, "/a/c/b"), ["GET", "POST"]);
        assert_eq!(verbs_of(ROUTES, "/a/c/e"), ["DELETE"]);
        assert_eq!(verbs_of(ROUTES, "/a/d/e"), ["PATCH"]);
        for none in ["", "/", "/a", "/a//b", "/a/1/b/", "/A/1/b", "/a/1/b/c", "a/1/b"] {
            assert!(verbs_of(ROUTES, none).is_empty(), "{none}");
        }
    }
}
