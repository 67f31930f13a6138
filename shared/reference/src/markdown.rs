//! Descriptions as HTML.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use pulldown_cmark_escape::{escape_html, escape_html_body_text};

/// A description as paragraphs, lists and tables. Its headings are nested below those of the page.
pub fn block(text: &str) -> String {
    let options = Options::ENABLE_TABLES;
    let mut written = String::new();
    html::push_html(&mut written, Parser::new_ext(text, options).map(harmless));
    written
}

/// A description within a line, without the paragraph element around a single paragraph.
pub fn inline(text: &str) -> String {
    let html = block(text);
    let single = html.trim().strip_prefix("<p>").and_then(|html| html.strip_suffix("</p>"));
    single.filter(|html| !html.contains("<p>")).unwrap_or(html.trim()).to_owned()
}

/// A string escaped for HTML, including attributes in double quotes.
pub fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    // Writing to a String cannot fail.
    let _ = escape_html(&mut written, text);
    written
}

/// A string escaped for the content of an element, where quotes need no escape.
pub fn escaped_content(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    // Writing to a String cannot fail.
    let _ = escape_html_body_text(&mut written, text);
    written
}

/// Replaces HTML with its text, and an image with its alternative text.
fn harmless(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => Event::Text(CowStr::Borrowed("")),
        Event::Start(Tag::Link { dest_url, .. }) if !is_permitted(&dest_url) => Event::Text(CowStr::Borrowed("")),
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            Event::Start(Tag::Heading { level: lower(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
        other => other,
    }
}

/// Whether a link's address is permitted on a page.
pub fn is_permitted(address: &str) -> bool {
    ["https://", "http://", "#", "/"].iter().any(|start| address.starts_with(start))
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        _ => HeadingLevel::H5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_lists_tables_code_and_links_are_written() {
        let html = block("## A\n\nSee [it](https://a.example) and `b`.\n\n- one\n\n| h |\n|---|\n| c |\n");
        for part in
            ["<h3>A</h3>", "<a href=\"https://a.example\">it</a>", "<code>b</code>", "<li>one</li>", "<td>c</td>"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(inline("`a` and b."), "<code>a</code> and b.");
        assert!(inline("a\n\nb").contains("<p>b</p>"));
    }

    #[test]
    fn html_in_a_description_stays_text() {
        let html = block("<script>alert(1)</script>\n\na <b onclick=\"x\">b</b> ![i](https://a.example/i.png)");
        assert!(!html.contains("<script") && !html.contains("<b") && !html.contains("<img"), "{html}");
        assert!(html.contains("&lt;script&gt;"), "{html}");
        assert!(!block("[x](javascript:alert(1))").contains("href"));
        assert_eq!(escaped("<a b=\"c\">&"), "&lt;a b=&quot;c&quot;&gt;&amp;");
    }
}
