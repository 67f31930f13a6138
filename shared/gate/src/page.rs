//! Pages for people: plain, complete without a style sheet or a script, and in no other site's frame.

use http::header::CONTENT_SECURITY_POLICY;

use crate::Reply;

/// The browser loads, runs, sends and frames nothing but the style in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// A page as a reply.
pub fn reply(html: String) -> Reply {
    Reply::ok_text("text/html; charset=utf-8", html).with_header(CONTENT_SECURITY_POLICY, POLICY)
}

/// A page with this title, as a text, and this content, as HTML.
pub fn html(title: &str, content: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n{content}</main>\n</body>\n</html>\n"
    )
}

/// A text as it stands in HTML, in an attribute too.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_never_becomes_markup() {
        assert_eq!(
            escaped("<a href=\"x\" id='y'>&amp;</a>"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;"
        );
        assert!(html("<script>", "").contains("<title>&lt;script&gt;</title>"));
    }
}
