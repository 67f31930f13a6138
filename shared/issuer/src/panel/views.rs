//! The views of the panel, as a link may name one that it opens.

/// The paths of the views below `/panel`, where `*` stands for an identifier. The panel's own router has the same ones
/// (`panel/main.js`), and a test of `tests/architecture` holds the two together.
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

/// Whether a path of the service is that of a view. The first of them stands at `/panel` as well.
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

/// Whether a part of a path may be an identifier of this service: no dots, which would lead out of the panel, and nothing
/// encoded.
fn is_identifier(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_view_has_all_its_parts_and_no_more() {
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
