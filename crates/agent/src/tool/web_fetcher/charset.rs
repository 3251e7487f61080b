//! From the bytes of an answer to its text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page it may say what its letters are.
const META_BYTES_MAX: usize = 1_024;

/// What an answer is, by what its sender says and, if that is nothing, by its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    Text,
    Other,
}

/// The type without its parameters, and the charset among them.
pub(super) fn parse_type(header: &str) -> (String, Option<String>) {
    let mut parts = header.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    (essence, charset.map(str::to_owned))
}

pub(super) fn kind(essence: &str) -> Kind {
    match essence {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/x-javascript"
        | "application/x-www-form-urlencoded"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/graphql"
        | "application/sql"
        | "application/x-sh"
        | "application/rtf" => Kind::Text,
        _ if essence.starts_with("text/") => Kind::Text,
        _ if essence.ends_with("+json") || essence.ends_with("+xml") => Kind::Text,
        _ => Kind::Other,
    }
}

/// For an answer that does not say what it is.
pub(super) fn guess(body: &[u8]) -> Kind {
    if body.contains(&0) {
        return Kind::Other;
    }
    let head: Vec<u8> = body
        .iter()
        .skip_while(|byte| byte.is_ascii_whitespace())
        .take(14)
        .map(u8::to_ascii_lowercase)
        .collect();
    match head.starts_with(b"<!doctype html") || head.starts_with(b"<html") {
        true => Kind::Html,
        false => Kind::Text,
    }
}

/// The text; what cannot be read is shown as U+FFFD. `None` if it is no text after all.
pub(super) fn decode(body: &[u8], charset: Option<&str>, kind: Kind) -> Option<String> {
    let said = || charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let inside = || match kind {
        Kind::Html => meta(body),
        Kind::Text | Kind::Other => None,
    };
    let preset = || match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        // The end may be cut inside a character.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => match kind {
            Kind::Html => WINDOWS_1252,
            Kind::Text | Kind::Other => UTF_8,
        },
    };
    // A byte order mark wins over all of them.
    let encoding = said().or_else(inside).unwrap_or_else(preset);
    let (text, used, _) = encoding.decode(body);
    let is_text = used != UTF_8 || !text.contains('\0');
    is_text.then(|| text.into_owned())
}

/// What a page says of itself: `charset=` inside a tag near its beginning.
fn meta(body: &[u8]) -> Option<&'static Encoding> {
    let head = body.get(..META_BYTES_MAX).unwrap_or(body).to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    let tag = head.split('<').find(|tag| tag.starts_with("meta") && tag.contains("charset"))?;
    let (_, value) = tag.split_once("charset")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(['"', '\'', ';', '>', '/', ' ']).unwrap_or(value.len());
    let found = Encoding::for_label(value.get(..end)?.as_bytes())?;
    // It could not be read if it were in one of these.
    Some(if found.is_ascii_compatible() { found } else { UTF_8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_their_sender_says() {
        let latin = b"caf\xe9s";
        assert_eq!(decode(latin, Some("ISO-8859-1"), Kind::Text).unwrap(), "cafés");
        assert_eq!(decode(latin, None, Kind::Text).unwrap(), "caf\u{fffd}s");
        assert_eq!(decode(latin, None, Kind::Html).unwrap(), "cafés");
        assert_eq!(decode(latin, Some("no-such"), Kind::Html).unwrap(), "cafés");
        assert_eq!(decode("cafés".as_bytes(), None, Kind::Html).unwrap(), "cafés");
        let page = b"<html><META charset='windows-1251'><p>\xcf\xf0\xe8</p>";
        assert!(decode(page, None, Kind::Html).unwrap().contains("При"));
        let old = b"<meta http-equiv=x content=\"text/html; charset=koi8-r\">\xf0";
        assert!(decode(old, None, Kind::Html).unwrap().ends_with('П'));
        assert!(decode(page, Some("utf-8"), Kind::Html).unwrap().contains('\u{fffd}'));
        let wide: Vec<u8> = "\u{feff}hé".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&wide, Some("utf-8"), Kind::Text).unwrap(), "hé");
        assert_eq!(decode(b"a\0b", None, Kind::Text), None);
        assert_eq!(decode(b"caf\xc3", None, Kind::Html).unwrap(), "caf\u{fffd}", "a cut end");
    }

    #[test]
    fn types_are_told_apart() {
        let (essence, charset) = parse_type(r#"Text/HTML; boundary=x; Charset="UTF-8""#);
        assert_eq!((essence.as_str(), charset.as_deref()), ("text/html", Some("UTF-8")));
        for (essence, means) in [
            ("text/html", Kind::Html),
            ("text/csv", Kind::Text),
            ("application/ld+json", Kind::Text),
            ("image/svg+xml", Kind::Text),
            ("image/png", Kind::Other),
            ("application/octet-stream", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(kind(essence), means, "{essence}");
        }
        assert_eq!(guess(b" \n<!DOCTYPE html>"), Kind::Html);
        assert_eq!(guess(b"{}"), Kind::Text);
        assert_eq!(guess(b"\x89PNG\0"), Kind::Other);
    }
}
