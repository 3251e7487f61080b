//! Cuts HTML into its pieces: text, tags that begin and tags that end.
//!
//! Builds no tree, so that nothing a page nests or leaves open costs more than its length: every
//! byte is looked at a few times at most. Never fails; the worst page is still pieces.

use std::borrow::Cow;

/// The longest name of a character, with its signs.
const ENTITY_BYTES_MAX: usize = 34;

/// The value of an attribute that is kept; a longer one is none.
const VALUE_BYTES_MAX: usize = 4 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Characters by name are characters.
    Text(Cow<'a, str>),
    /// The name in lower case.
    Begin(Tag),
    End(String),
}

/// What is used of a tag that begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub name: String,
    pub href: Option<String>,
    pub src: Option<String>,
    pub alt: Option<String>,
    pub start: Option<String>,
}

/// Elements whose content is no markup, up to their end.
const RAW: &[&str] =
    &["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"];

pub(super) fn read(html: &str) -> Pieces<'_> {
    Pieces { rest: html, raw: None }
}

pub(super) struct Pieces<'a> {
    rest: &'a str,
    /// The element whose content comes next.
    raw: Option<String>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if let Some(name) = self.raw.take()
            && let Some(text) = self.raw_text(&name)
        {
            return Some(text);
        }
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let Some(tag) = self.rest.strip_prefix('<') else {
                let end = memchr::memchr(b'<', self.rest.as_bytes()).unwrap_or(self.rest.len());
                return Some(Piece::Text(characters(self.take(end))));
            };
            let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
            if let Some(comment) = tag.strip_prefix("!--") {
                self.skip_comment(comment);
            } else if begins(tag) {
                return self.begin();
            } else if let Some(name) = tag.strip_prefix('/').filter(|name| begins(name)) {
                let bytes = name_bytes(name);
                let name = name.get(..bytes).unwrap_or_default().to_ascii_lowercase();
                self.take(2 + bytes);
                self.attributes(&mut Tag::default());
                return Some(Piece::End(name));
            } else if tag.starts_with(['!', '?', '/']) {
                let end = memchr::memchr(b'>', self.rest.as_bytes());
                self.take(end.map_or(self.rest.len(), |end| end + 1));
            } else {
                self.take(1);
                return Some(Piece::Text(Cow::Borrowed("<")));
            }
        }
    }
}

impl<'a> Pieces<'a> {
    /// All before `bytes`, which is at the edge of a character.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_comment(&mut self, comment: &'a str) {
        // `<!-->` and `<!--->` are whole comments.
        for short in [">", "->"] {
            if let Some(rest) = comment.strip_prefix(short) {
                self.rest = rest;
                return;
            }
        }
        let end = memchr::memmem::find(comment.as_bytes(), b"-->");
        self.rest = end.and_then(|end| comment.get(end + 3..)).unwrap_or_default();
    }

    /// The content of an element without markup, if there is any.
    fn raw_text(&mut self, name: &str) -> Option<Piece<'a>> {
        let mut end = self.rest.len();
        for at in memchr::memmem::find_iter(self.rest.as_bytes(), b"</") {
            let after = self.rest.as_bytes().get(at + 2..).unwrap_or_default();
            let (word, next) = (after.get(..name.len()), after.get(name.len()));
            let ends = next.is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>'));
            if word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes())) && ends {
                end = at;
                break;
            }
        }
        let text = self.take(end);
        let text = match name {
            "title" | "textarea" => characters(text),
            _ => Cow::Borrowed(text),
        };
        (!text.is_empty()).then_some(Piece::Text(text))
    }

    fn begin(&mut self) -> Option<Piece<'a>> {
        self.take(1);
        let bytes = name_bytes(self.rest);
        let name = self.take(bytes).to_ascii_lowercase();
        let mut tag = Tag { name, ..Tag::default() };
        self.attributes(&mut tag);
        if RAW.contains(&tag.name.as_str()) {
            self.raw = Some(tag.name.clone());
        }
        Some(Piece::Begin(tag))
    }

    /// Reads to the end of the tag; the first attribute of a name counts.
    fn attributes(&mut self, tag: &mut Tag) {
        let space = |c: char| c.is_ascii_whitespace() || c == '/';
        loop {
            self.rest = self.rest.trim_start_matches(space);
            let Some(first) = self.rest.chars().next() else { return };
            if first == '>' {
                self.take(1);
                return;
            }
            // An equals sign at the beginning belongs to the name.
            let after = first.len_utf8();
            let stops = |c: char| space(c) || c == '>' || c == '=';
            let tail = self.rest.get(after..).unwrap_or_default();
            let name = self.take(after + tail.find(stops).unwrap_or(tail.len()));
            let rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            let Some(rest) = rest.strip_prefix('=') else { continue };
            self.rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            let value = self.value();
            let place = match name.to_ascii_lowercase().as_str() {
                "href" => &mut tag.href,
                "src" => &mut tag.src,
                "alt" => &mut tag.alt,
                "start" => &mut tag.start,
                _ => continue,
            };
            if place.is_none() && value.len() <= VALUE_BYTES_MAX {
                *place = Some(characters(value).into_owned());
            }
        }
    }

    fn value(&mut self) -> &'a str {
        for quote in ['"', '\''] {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                self.rest = rest;
                let end = rest.find(quote);
                let value = self.take(end.unwrap_or(rest.len()));
                self.take(1);
                return value;
            }
        }
        let end = self.rest.find(|c: char| c.is_ascii_whitespace() || c == '>');
        self.take(end.unwrap_or(self.rest.len()))
    }
}

fn name_bytes(text: &str) -> usize {
    let ends = |c: char| c.is_ascii_whitespace() || c == '/' || c == '>';
    text.find(ends).unwrap_or(text.len())
}

/// Puts characters in place of their names.
fn characters(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let (before, mut rest) = text.split_at(first);
    out.push_str(before);
    while !rest.is_empty() {
        // What is looked at is short, so that a text of nothing but signs costs no more.
        let window = rest.get(..rest.floor_char_boundary(ENTITY_BYTES_MAX)).unwrap_or(rest);
        let end = window.find(';').map(|end| end + 1);
        let decoded = end.and_then(|end| {
            let named = window.get(..end)?;
            let decoded = html_escape::decode_html_entities(named);
            matches!(decoded, Cow::Owned(_)).then(|| (decoded.into_owned(), end))
        });
        let end = match decoded {
            Some((decoded, end)) => {
                out.push_str(&decoded);
                end
            }
            None => {
                out.push('&');
                1
            }
        };
        rest = rest.get(end..).unwrap_or_default();
        let next = memchr::memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
        let (plain, after) = rest.split_at(next);
        out.push_str(plain);
        rest = after;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(html: &str) -> String {
        let piece = |piece: Piece<'_>| match piece {
            Piece::Text(text) => format!("{text:?}"),
            Piece::Begin(tag) => match tag.href {
                Some(href) => format!("<{} {href}>", tag.name),
                None => format!("<{}>", tag.name),
            },
            Piece::End(name) => format!("</{name}>"),
        };
        read(html).map(piece).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pieces() {
        for (html, want) in [
            ("", ""),
            ("a<B c>d</B e>f", r#""a" <b> "d" </b> "f""#),
            ("<!doctype html><?x?><a>", "<a>"),
            ("1 < 2 <3 </ x></>", r#""1 " "<" " 2 " "<" "3 ""#),
            ("a<!-- <b> -- > -->c<!-->d<!--->e<!-- f", r#""a" "c" "d" "e""#),
            ("<a href=x href=y>", "<a x>"),
            ("<a title='a>b' HREF = \"c d\" >e", r#"<a c d> "e""#),
            ("<a href='x'id=1/><br/>", "<a x> <br>"),
            ("<a href=/x/ >", "<a /x/>"),
            ("<a =href=x href=é>", "<a é>"),
            ("<a href=\"a&amp;b=1&lt=2\">", "<a a&b=1&lt=2>"),
            ("<a href='unclosed", "<a unclosed>"),
            ("<a href=", "<a >"),
            ("<a", "<a>"),
            ("a</b", r#""a" </b>"#),
            (
                "<script>if (a</b> <c) </scriptx></SCRIPT >d",
                r#"<script> "if (a</b> <c) </scriptx>" </script> "d""#,
            ),
            ("<style></style>a", r#"<style> </style> "a""#),
            ("<title>a &amp; <b></title>", r#"<title> "a & <b>" </title>"#),
            ("<script>never ends", r#"<script> "never ends""#),
            ("&eacute;&#233;&#xE9; &amp;lt; & &x; &nosuch; é&", r#""ééé &lt; & &x; &nosuch; é&""#),
            ("&#0;&#x110000;&CounterClockwiseContourIntegral;", r#""&#0;&#x110000;∳""#),
        ] {
            assert_eq!(cut(html), want, "{html}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_page_breaks_it(html in "([<>/!&;='\" a-c-]|script|</script|&lt;|é|<a href=)*") {
            read(&html).for_each(drop);
        }
    }
}
