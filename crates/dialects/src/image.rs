//! Pictures in what a user sends: which are taken, and in which forms they may come.

use polyloop_session::item::Part;
use serde::Deserialize;

use crate::shown;

/// Of one picture, as base64.
pub const IMAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A picture: base64 with its kind, or both as a data URL.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Image {
    /// `data:image/png;base64,…`; no other URL is fetched.
    #[serde(default)]
    pub image_url: Option<String>,
    /// image/png, image/jpeg, image/gif or image/webp.
    #[serde(default)]
    pub media_type: Option<String>,
    /// Base64.
    #[serde(default)]
    pub data: Option<String>,
}

/// The part it is; `Err` says what is wrong with it.
pub(crate) fn part(image: Image) -> Result<Part, String> {
    let (media_type, data) = match image {
        Image { image_url: Some(url), media_type: None, data: None } => {
            let rest = url.strip_prefix("data:");
            let split = rest.and_then(|rest| rest.split_once(";base64,"));
            let Some((kind, data)) = split else {
                return Err(format!(
                    "image_url: {} is no data URL; send data:image/png;base64,…",
                    shown(&url)
                ));
            };
            (kind.to_owned(), data.to_owned())
        }
        Image { image_url: None, media_type: Some(kind), data: Some(data) } => (kind, data),
        Image { .. } => {
            return Err("an image is either image_url, or media_type and data".to_owned());
        }
    };
    if !KINDS.contains(&media_type.as_str()) {
        let known = KINDS.join(", ");
        return Err(format!("media_type: {} is not taken; use {known}", shown(&media_type)));
    }
    if data.len() > IMAGE_BYTES_MAX {
        return Err(format!("image: {} bytes of base64, at most {IMAGE_BYTES_MAX}", data.len()));
    }
    if !is_base64(&data) {
        return Err("image: the data is not base64".to_owned());
    }
    if !begins_as(&media_type, &data) {
        return Err(format!("image: the data is no {media_type}"));
    }
    Ok(Part::Image { media_type: media_type.into(), data: data.into() })
}

/// Whether the first bytes are those of that kind: a provider that refuses a picture would refuse
/// the conversation from then on.
fn begins_as(media_type: &str, base64: &str) -> bool {
    match media_type {
        "image/png" => base64.starts_with("iVBORw0KGg"),
        "image/jpeg" => base64.starts_with("/9j/"),
        "image/gif" => base64.starts_with("R0lGOD"),
        // `RIFF`, a length, `WEBP`: its last three letters are a group of their own.
        "image/webp" => base64.starts_with("UklGR") && base64.get(12..16) == Some("RUJQ"),
        _ => false,
    }
}

fn is_base64(data: &str) -> bool {
    let body = data.trim_end_matches('=');
    let is_char = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    !body.is_empty()
        && data.len() - body.len() <= 2
        && data.len().is_multiple_of(4)
        && body.bytes().all(is_char)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAA";

    fn given(url: Option<&str>, kind: Option<&str>, data: Option<&str>) -> Result<Part, String> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        part(Image { image_url: owned(url), media_type: owned(kind), data: owned(data) })
    }

    #[test]
    fn both_forms_are_the_same_picture() {
        let expected = Part::Image { media_type: "image/png".into(), data: PNG.into() };
        let url = given(Some(&format!("data:image/png;base64,{PNG}")), None, None);
        assert_eq!(url.as_ref(), Ok(&expected));
        assert_eq!(given(None, Some("image/png"), Some(PNG)), Ok(expected));
    }

    #[test]
    fn a_picture_begins_as_its_kind_says() {
        let pictures = [
            ("image/png", PNG),
            ("image/jpeg", "/9j/4AAQSkZJRgABAQAAAQ=="),
            ("image/gif", "R0lGODlhAQABAAAAACw="),
            ("image/webp", "UklGRhoAAABXRUJQVlA4TA0AAAA="),
        ];
        for (kind, data) in pictures {
            for (wanted, _) in pictures {
                let taken = given(None, Some(wanted), Some(data)).is_ok();
                assert_eq!(taken, kind == wanted, "{kind} as {wanted}");
            }
        }
    }

    #[test]
    fn what_is_no_picture_is_refused_with_a_reason() {
        let long = "A".repeat(IMAGE_BYTES_MAX + 4);
        let cases = [
            (given(Some("https://example.org/a.png"), None, None), "no data URL"),
            (given(Some("data:text/html;base64,aGk="), None, None), "text/html"),
            (given(None, Some("image/svg+xml"), Some("aGk=")), "image/svg+xml"),
            (given(None, Some("image/png"), None), "either"),
            (given(None, None, None), "either"),
            (given(None, Some("image/png"), Some("")), "not base64"),
            (given(None, Some("image/png"), Some("a b=")), "not base64"),
            (given(None, Some("image/png"), Some("a===")), "not base64"),
            (given(None, Some("image/png"), Some("abcde")), "not base64"),
            (given(None, Some("image/png"), Some(&long)), "at most"),
            (given(None, Some("image/png"), Some("aGVsbG8h")), "is no image/png"),
        ];
        for (told, word) in cases {
            let told = told.expect_err(word);
            assert!(told.contains(word), "{told}");
        }
    }
}
