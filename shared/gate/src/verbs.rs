//! A path's verbs, with OPTIONS for documents that scripts of every origin may read.

use crate::{endpoints, routes};

/// The verbs of all routes with this path, in the order of the routes; empty if no route has it.
///
/// Documents that scripts of every origin may read also have the verb OPTIONS, without a route. A function would need a
/// right for each such route, and `fallback` gets these requests anyway.
pub fn verbs_of(path: &str) -> Vec<&'static str> {
    let mut verbs = routes::verbs_of(path);
    if is_open(path) {
        verbs.push("OPTIONS");
    }
    verbs
}

/// Whether scripts of every origin may read the document at this path.
pub fn is_open(path: &str) -> bool {
    routes::functions_of_get(path)
        .any(|function| endpoints::of_function(function).is_some_and(|endpoint| endpoint.any_origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_document_for_scripts_of_every_origin_takes_options() {
        for path in ["/oauth2/jwks", "/openapi.json", "/.well-known/oauth-protected-resource/mcp"] {
            assert_eq!(verbs_of(path), ["GET", "HEAD", "OPTIONS"], "{path}");
        }
        for path in ["/mcp", "/oauth2/token", "/panel/session", "/panel/deliveries", "/", "/openapi.json/", "/problems"]
        {
            assert!(!is_open(path) && !verbs_of(path).contains(&"OPTIONS"), "{path}");
        }
    }
}
