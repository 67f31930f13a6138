//! Pages for people: plain, usable without a style sheet or a script, and never in a frame of another site.

use http::header::CONTENT_SECURITY_POLICY;

use crate::Reply;

/// The style of every page: the panel's colours, spaces and type, and the rules of these pages.
const STYLE: &str = concat!(include_str!("../../../panel/design.css"), include_str!("page.css"));

/// The service's icon.
const SIGN: &str = include_str!("../../../panel/icon.svg");

/// The content security policy. Under it, the browser loads, runs, sends and frames nothing except the page's style,
/// which is allowed by its hash.
pub const POLICY: &str = "default-src 'none'; style-src 'sha256-r6356vE12Jt9vNmGz+Q4CPs6CYy79LLX5QSjdC5G2to='; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// The media type of pages.
pub(crate) const MEDIA_TYPE: &str = "text/html; charset=utf-8";

/// A page as a reply.
pub fn reply(html: impl Into<String>) -> Reply {
    Reply::ok_text(MEDIA_TYPE, html).with_header(CONTENT_SECURITY_POLICY, POLICY)
}

/// A page with this title (plain text) and this content (HTML).
pub fn html(title: &str, content: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<header><span aria-hidden=\"true\">{SIGN}</span>Waypost</header>\n\
         <main>\n<h1>{title}</h1>\n{content}</main>\n</body>\n</html>\n"
    )
}

/// Escapes a string for HTML, also in attributes.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Converts internal text to HTML: text between backticks becomes code. A single backtick is kept.
pub fn prose(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, code, after)) = first_code(rest) {
        html += &format!("{}<code>{}</code>", escaped(before), escaped(code));
        rest = after;
    }
    html + &escaped(rest)
}

/// The text before the first code span, the code, and the text after it.
fn first_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::digest;
    use base64::{Engine, prelude::BASE64_STANDARD};

    #[test]
    fn the_policy_allows_the_style_of_the_pages_and_no_other() {
        let hash = BASE64_STANDARD.encode(digest::digest(&digest::SHA256, STYLE.as_bytes()));
        assert!(POLICY.contains(&format!("style-src 'sha256-{hash}';")), "the hash of the style is now {hash}");
        assert!(!POLICY.contains("unsafe") && !STYLE.contains("url("), "{POLICY}");
        assert!(html("x", "").contains(&format!("<style>{STYLE}</style>")));
    }

    #[test]
    fn a_text_never_becomes_markup() {
        assert_eq!(
            escaped("<a href=\"x\" id='y'>&amp;</a>"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;"
        );
        assert!(html("<script>", "").contains("<title>&lt;script&gt;</title>"));
        assert_eq!(prose("<b> `<i>` & `"), "&lt;b&gt; <code>&lt;i&gt;</code> &amp; `");
    }

    #[test]
    fn code_is_marked_up_without_backticks() {
        assert_eq!(prose("Send `a` or `{\"b\": 1}`."), "Send <code>a</code> or <code>{&quot;b&quot;: 1}</code>.");
        assert_eq!(prose("nothing"), "nothing");
    }
}
