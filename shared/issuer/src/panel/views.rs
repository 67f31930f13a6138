//! The views of the panel that a link can open.

/// The paths of the views below `/panel`; `*` represents an identifier. The panel's router has the same paths
/// (`panel/main.js`), and a test in `tests/architecture` compares the two.
pub const VIEWS: [&str; 12] = [
    "deliveries",
    "deliveries/*",
    "webhooks",
    "webhooks/new",
    "webhooks/*",
    "webhooks/*/edit",
    "event-types",
    "providers",
    "applications",
    "applications/new",
    "applications/*",
    "links",
];

/// Whether this path of the service is a view's path. `/panel` is the first view.
pub fn is_view(path: &str) -> bool {
    match path.strip_prefix("/panel") {
        Some("") => true,
        Some(rest) => rest.strip_prefix('/').is_some_and(|path| VIEWS.iter().any(|view| matches(view, path))),
        None => false,
    }
}

fn matches(view: &str, path: &str) -> bool {
    let fits = |(wanted, given): (&str, &str)| if wanted == "*" { is_identifier(given) } else { wanted == given };
    view.split('/').count() == path.split('/').count() && view.split('/').zip(path.split('/')).all(fits)
}

/// Whether a part of a path may be one of this service's identifiers. Dots could lead out of the panel, as could
/// encoded characters.
fn is_identifier(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_view_has_exactly_its_parts() {
        for view in ["/panel", "/panel/deliveries", "/panel/webhooks/whk_1/edit", "/panel/applications/new"] {
            assert!(is_view(view), "{view}");
        }
        for none in [
            "",
            "/",
            "/panel/",
            "/panels",
            "panel",
            "/panel/delivery",
            "/panel/deliveries/",
            "/panel/deliveries/..",
            "/panel/deliveries/%2E%2e",
            "/panel/deliveries/dlv_1/x",
            "/panel/webhooks//edit",
            "/panel/webhooks/whk_1/delete",
            "/panel/provider/stripe",
            "/panel/session",
            "/panel/*",
        ] {
            assert!(!is_view(none), "{none}");
        }
    }
}
