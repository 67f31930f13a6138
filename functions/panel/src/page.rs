//! The panel's page, with the deployment's settings.

use std::{borrow::Cow, io::Write as _};

use aws_lc_rs::digest;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderName,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY},
};

use crate::files::{File, PAGE, RELEASE};
use base::{Environment, FromEnvironment};
use gate::{Reply, page::escaped};
use issuer::panel::{frame_ancestors::FrameAncestors, look::PanelLook};
use problem::Problem;

/// The tags in the page's source that depend on settings.
const TITLE: &str = "<title>Waypost</title>";
const NAME: &str = r#"<meta name="application-name" content="Waypost">"#;
const SIGN_IN: &str = r#"<meta name="sign-in" content="link">"#;

/// The page's settings: `PANEL_CREDENTIALS`, `PANEL_FRAME_ANCESTORS`, `PANEL_NAME` and `PANEL_ACCENT_COLOR`.
#[derive(Debug)]
pub struct PageSettings {
    /// Whether the page accepts an application's identifier and secret, in addition to links.
    pub takes_credentials: bool,
    /// The pages that may show the panel in a frame.
    pub ancestors: FrameAncestors,
    /// The panel's name and colour.
    pub look: PanelLook,
}

impl FromEnvironment for PageSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let takes_credentials = environment.parsed("PANEL_CREDENTIALS", false);
        let ancestors = FrameAncestors::from_environment(environment);
        let look = PanelLook::from_environment(environment);
        Some(Self { takes_credentials: takes_credentials?, ancestors: ancestors?, look: look? })
    }
}

/// This deployment's page.
#[derive(Debug)]
pub struct Page {
    file: File,
    policy: String,
}

impl Page {
    /// Creates the page. Its head contains the settings, so that a browser draws it correctly from the start.
    pub fn new(settings: &PageSettings) -> Self {
        let plain = html(settings).into_bytes();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&plain).expect("writing to memory cannot fail");
        let gzip = encoder.finish().expect("writing to memory cannot fail");
        let file = File {
            media_type: "text/html; charset=utf-8",
            hash: Cow::Owned(hash(&plain)),
            plain: Cow::Owned(plain),
            gzip: Cow::Owned(gzip),
        };
        Self { file, policy: policy(&settings.ancestors) }
    }

    /// The page, which a browser revalidates on each visit.
    pub fn reply(&self, request: &HeaderMap) -> Result<Reply, Problem> {
        let reply = self.file.reply(request)?.with_header(CACHE_CONTROL, "no-cache");
        let reply = reply.with_computed_header(CONTENT_SECURITY_POLICY, &self.policy)?;
        let reply = reply.with_header(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
        Ok(reply.with_header(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"))
    }
}

/// The content security policy: the page loads scripts, styles and pictures from this service, sends requests only to
/// it, and can be framed only by the listed pages. Trusted types keep scripts from turning text into markup.
fn policy(ancestors: &FrameAncestors) -> String {
    let ancestors = ancestors.sources();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}; require-trusted-types-for 'script'; \
         trusted-types 'none'"
    )
}

fn html(settings: &PageSettings) -> String {
    let name = escaped(settings.look.name.as_str());
    let ways = if settings.takes_credentials { "link credentials" } else { "link" };
    let mut head = meta("sign-in", ways);
    if !settings.ancestors.is_empty() {
        head += &meta("frame-ancestors", &settings.ancestors.to_string());
    }
    if let Some(accent) = &settings.look.accent {
        head += &meta("accent-color", accent.as_str());
        head += &format!("<link rel=\"stylesheet\" href=\"/panel/assets/{RELEASE}/brand.css\">");
    }
    let page = PAGE.replacen(TITLE, &format!("<title>{name}</title>"), 1);
    page.replacen(NAME, &meta("application-name", &name), 1).replacen(SIGN_IN, &head, 1)
}

fn meta(name: &str, content: &str) -> String {
    format!("<meta name=\"{name}\" content=\"{content}\">")
}

fn hash(content: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, content);
    digest.as_ref()[..16].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{
        HeaderValue, StatusCode,
        header::{ACCEPT_ENCODING, IF_NONE_MATCH},
    };

    fn plain() -> PageSettings {
        let look = PanelLook { name: Default::default(), accent: None };
        PageSettings { takes_credentials: false, ancestors: FrameAncestors::default(), look }
    }

    #[test]
    fn a_client_with_the_current_page_gets_304_in_either_form() {
        let page = Page::new(&plain());
        let tag = format!("\"{}\"", page.file.hash);
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let request = [(IF_NONE_MATCH, HeaderValue::from_str(&known).expect("a value"))].into_iter().collect();
            assert_eq!(page.reply(&request).expect("a reply").status, StatusCode::NOT_MODIFIED, "{known}");
        }
        let mut packed = HeaderMap::new();
        packed.insert(IF_NONE_MATCH, HeaderValue::from_static("\"x\""));
        packed.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(page.reply(&packed).expect("a reply").status, StatusCode::OK);
    }

    #[test]
    fn the_page_names_its_files_and_only_one_form_accepts_credentials() {
        let page = html(&plain());
        let open = html(&PageSettings { takes_credentials: true, ..plain() });
        assert!(page.contains(&format!("/panel/assets/{RELEASE}/")));
        assert!(page.contains("content=\"link\"") && open.contains("content=\"link credentials\""));
        assert_eq!(open.replace("link credentials", "link"), page);
        assert!(page.contains(TITLE) && page.contains(NAME) && !page.contains("brand.css"));
    }

    #[test]
    fn the_page_has_the_settings_of_the_deployment_as_text() {
        let look = PanelLook {
            name: "A \"B\" & <C>".parse().expect("a name"),
            accent: Some("#7a1fa2".parse().expect("a colour")),
        };
        let ancestors = "https://app.example.com https://b.example".parse().expect("origins");
        let settings = PageSettings { takes_credentials: false, ancestors, look };
        let page = html(&settings);
        assert!(page.contains("<title>A &quot;B&quot; &amp; &lt;C&gt;</title>"), "{page}");
        assert!(page.contains(r#"<meta name="application-name" content="A &quot;B&quot; &amp; &lt;C&gt;">"#), "{page}");
        assert!(page.contains("content=\"#7a1fa2\">"), "{page}");
        assert!(page.contains(r#"content="https://app.example.com https://b.example""#), "{page}");
        let policy = policy(&settings.ancestors);
        assert!(policy.contains("; frame-ancestors https://app.example.com https://b.example; "), "{policy}");
        assert_ne!(Page::new(&settings).file.hash, Page::new(&plain()).file.hash);
    }
}
