//! The admin panel, where people return from a payment provider.

use base::{Environment, FromEnvironment};
use url::Url;

/// The admin panel: `ADMIN_PANEL_URL`, or this service's page below `BASE_URL`.
#[derive(Debug, Clone)]
pub struct PanelSettings {
    /// The admin panel's address, possibly with a path, without a trailing slash.
    pub address: String,
    /// Whether the panel is this service's page, which has no view to return to.
    pub is_own: bool,
}

impl FromEnvironment for PanelSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        match environment.optional("ADMIN_PANEL_URL") {
            Some(value) => {
                let address = panel_address(&value);
                if address.is_none() {
                    let wanted = "not an address such as https://panel.example.com/admin, without a query or fragment";
                    environment.fault("ADMIN_PANEL_URL", &value, &wanted);
                }
                address.map(|address| Self { address, is_own: false })
            }
            // The settings of every function report a missing address.
            None => Some(Self { address: format!("{}/panel", environment.optional("BASE_URL")?), is_own: true }),
        }
    }
}

fn panel_address(value: &str) -> Option<String> {
    let url = Url::parse(value).ok()?;
    let plain =
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    (matches!(url.scheme(), "http" | "https") && plain).then(|| url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use base::environment::read_from;

    use super::*;

    #[test]
    fn the_panel_is_the_services_page_by_default() {
        let own = read_from::<PanelSettings>(|name| (name == "BASE_URL").then(|| "https://api.example.com".into()));
        let own = own.expect("the default");
        assert_eq!((own.address.as_str(), own.is_own), ("https://api.example.com/panel", true));
        let set = read_from::<PanelSettings>(|name| match name {
            "ADMIN_PANEL_URL" => Some("https://Panel.example.com:8443/admin/".into()),
            _ => None,
        });
        let set = set.expect("set");
        assert_eq!((set.address.as_str(), set.is_own), ("https://panel.example.com:8443/admin", false));
    }

    #[test]
    fn a_panel_without_a_plain_address_is_refused_by_name() {
        for good in ["http://127.0.0.1:3000", "https://panel.example.com/", "https://panel.example.com/a/b"] {
            assert!(panel_address(good).is_some(), "{good}");
        }
        for bad in [
            "panel.example.com",
            "/panel",
            "ftp://panel.example.com",
            "javascript:alert(1)",
            "https://",
            "https://panel.example.com/?",
            "https://panel.example.com/#",
            "https://panel.example.com/?a=b",
            "https://user@panel.example.com",
            "https://user:secret@panel.example.com",
        ] {
            assert_eq!(panel_address(bad), None, "{bad}");
        }
        let error = read_from::<PanelSettings>(|_| Some("nonsense".into())).expect_err("refused");
        assert!(error.0.len() == 1 && error.0[0].starts_with("ADMIN_PANEL_URL"), "{error}");
    }
}
