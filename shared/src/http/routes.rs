//! Matching a path against routes as template.yaml declares them, for those requests that the gateway found no route for.

/// The verbs of all routes with this path, in the order of the routes; none when no route has it. A parameter
/// (`{name}`) stands for one segment that is not empty.
pub fn verbs_of(routes: &[(&'static str, &str)], path: &str) -> Vec<&'static str> {
    routes.iter().filter(|(_, route)| matches(route, path)).map(|(verb, _)| *verb).collect()
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

    const ROUTES: &[(&str, &str)] = &[("GET", "/a/{x}/b"), ("POST", "/a/{x}/b"), ("GET", "/a/c/d")];

    #[test]
    fn a_path_has_the_verbs_of_its_routes() {
        assert_eq!(verbs_of(ROUTES, "/a/1/b"), ["GET", "POST"]);
        assert_eq!(verbs_of(ROUTES, "/a/c/d"), ["GET"]);
        for none in ["", "/", "/a", "/a//b", "/a/1/b/", "/A/1/b", "/a/1/b/c", "a/1/b"] {
            assert!(verbs_of(ROUTES, none).is_empty(), "{none}");
        }
    }
}
