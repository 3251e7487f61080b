//! Markdown as HTML that is safe to show, whatever a model wrote.
//!
//! Every tag is made here: HTML in the text is shown as text, an image is a link to it, and a link
//! leads to the web, to a mail address or within the page, or it is no link.

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

pub fn html(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut dropped = 0_usize;
    let safe = Parser::new_ext(markdown, options).filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => None,
        Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
            if !is_harmless(&dest_url) {
                dropped += 1;
                return None;
            }
            let (link_type, id) = (LinkType::Inline, CowStr::Borrowed(""));
            Some(Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        Event::End(TagEnd::Link | TagEnd::Image) => match dropped.checked_sub(1) {
            Some(left) => {
                dropped = left;
                None
            }
            None => Some(Event::End(TagEnd::Link)),
        },
        other => Some(other),
    });
    let mut out = String::with_capacity(markdown.len() * 3 / 2);
    html::push_html(&mut out, safe);
    out
}

/// Only these schemes; anything else with a colon before a slash may be one.
fn is_harmless(url: &str) -> bool {
    let plain: String = url.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    let plain = plain.to_ascii_lowercase();
    let scheme = plain.split(['/', '?', '#']).next().unwrap_or("");
    let known = ["http:", "https:", "mailto:"].iter().any(|known| plain.starts_with(known));
    known || !scheme.contains(':') && !scheme.contains("&#") && !plain.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_shown() {
        let rows = [
            ("**a** `b`", "<p><strong>a</strong> <code>b</code></p>\n"),
            ("[x](https://e.org/?a=b:c)", "<p><a href=\"https://e.org/?a=b:c\">x</a></p>\n"),
            ("[x](#part)", "<p><a href=\"#part\">x</a></p>\n"),
            ("![alt](https://e.org/i.png)", "<p><a href=\"https://e.org/i.png\">alt</a></p>\n"),
            ("```js\n<b>\n```", "<pre><code class=\"language-js\">&lt;b&gt;\n</code></pre>\n"),
        ];
        for (markdown, want) in rows {
            assert_eq!(html(markdown), want);
        }
    }

    #[test]
    fn nothing_else_is_let_through() {
        let texts = [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](java\tscript:alert(1))",
            "[x](&#106;avascript:alert(1))",
            "[x](data:text/html;base64,PHN2Zz4=)",
            "[x](//evil.example/)",
            "![x](javascript:alert(1))",
            "<javascript:alert(1)>",
            "[x]: javascript:alert(1)\n\n[x]",
            "[a ![b](data:x) c](vbscript:x)",
            "```\"><script>\nx\n```",
        ];
        for text in texts {
            let made = html(text);
            let tags: Vec<&str> = made.split('<').skip(1).collect();
            for tag in tags {
                let inside = tag.split('>').next().unwrap_or("");
                let name = inside.split(' ').next().unwrap_or("").trim_start_matches('/');
                assert!(["p", "pre", "code"].contains(&name), "{text}: {made}");
                assert!(!inside.contains("onerror"), "{text}: {made}");
            }
        }
    }
}
