//! Providers' JSON, read leniently and with its bytes kept.
//!
//! A field of another kind than expected counts as absent, and of a field given twice the last one
//! counts. What goes back to a provider is its own text, never a copy made from parsed values:
//! only the blanks between its tokens are lost.

use std::borrow::Cow;
use std::fmt;

use polyloop_session::summary;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::Request;
use super::pieces::Pieces;

/// Of a body that is not JSON, in a fault.
const TOLD_CHARS_MAX: usize = 200;
/// Of a provider's own words.
const WORDS_CHARS_MAX: usize = 500;

/// Most objects have no more.
const FIELDS: usize = 8;
/// What is set aside for a request beside its texts.
const BODY_BYTES_MIN: usize = 4 * 1024;

/// An object whose values have not been looked at yet.
#[derive(Default)]
pub(super) struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// `None` when it is something else.
    pub fn read(json: &'a str) -> Option<Object<'a>> {
        serde_json::from_str(json).ok()
    }

    /// A field that is there and not null.
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.fields.iter().rev().find(|(field, _)| field == name)?;
        (value.get() != "null").then_some(*value)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        text(self.raw(name)?)
    }

    pub fn object(&self, name: &str) -> Option<Object<'a>> {
        Object::read(self.raw(name)?.get())
    }

    /// Empty when it is no list.
    pub fn list(&self, name: &str) -> Vec<&'a RawValue> {
        self.raw(name).map(list).unwrap_or_default()
    }

    /// Some servers write whole numbers with a fraction, or in quotes.
    pub fn count(&self, name: &str) -> Option<u64> {
        let raw = self.raw(name)?.get().trim_matches('"');
        let whole = raw.parse().ok();
        whole.or_else(|| raw.parse().ok().filter(|n: &f64| *n >= 0.0).map(|n| n as u64))
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|value| value.get() == "true")
    }

    /// All others that are there and not null, in their order.
    pub fn without(&self, names: &[&str]) -> Fields {
        let mut fields = self.all();
        fields.0.retain(|(name, value)| !names.contains(&&**name) && value.get() != "null");
        fields
    }

    pub fn all(&self) -> Fields {
        let mut all: Vec<(String, Box<RawValue>)> = Vec::new();
        for (name, value) in &self.fields {
            let Some(value) = packed(value) else { continue };
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = value,
                None => all.push((name.clone().into_owned(), value)),
            }
        }
        Fields(all)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Object<'a>, D::Error> {
        struct Fill;

        impl<'de> Visitor<'de> for Fill {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::with_capacity(FIELDS);
                while let Some(Name(name)) = map.next_key()? {
                    fields.push((name, map.next_value()?));
                }
                Ok(Object { fields })
            }
        }

        from.deserialize_map(Fill)
    }
}

#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Fields of an object, to be written into another.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where it was, or behind the others.
    pub fn set(&mut self, name: &str, value: Option<Box<RawValue>>) {
        let Some(value) = value else { return };
        match self.0.iter_mut().find(|(field, _)| field == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub fn extend(&mut self, others: Fields) {
        self.0.extend(others.0);
    }

    pub fn is(&self, name: &str, wanted: &str) -> bool {
        let is_it = |value: &RawValue| text(value).is_some_and(|text| text == wanted);
        self.0.iter().any(|(field, value)| field == name && is_it(value))
    }

    /// As compact JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Empty when it is no list.
pub(super) fn list(raw: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Half of a character that a provider wrote in two escapes and parted becomes a mark: one bad
/// character is no reason to lose an answer.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    struct Lossy;

    impl Visitor<'_> for Lossy {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    let quoted = raw.get().starts_with('"');
    let read = || (&mut serde_json::Deserializer::from_str(raw.get())).deserialize_bytes(Lossy);
    quoted.then(read)?.ok()
}

/// A request's body, in memory that need not grow while it is written.
pub(super) fn written(body: &impl Serialize, request: &Request) -> Pieces {
    let texts = summary::bytes(&request.prompt.messages);
    let mut shared = request.tools.written_so_far();
    shared.push(request.instructions.written().clone());
    // Quotes, line ends and the names of fields take their room.
    let mut out = Pieces::filling(texts + texts / 8 + BODY_BYTES_MIN, shared);
    match serde_json::to_writer(&mut out, body) {
        Ok(()) => out.done(),
        Err(_) => Pieces::default(),
    }
}

/// JSON without the blanks between its tokens.
pub(super) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if quoted || !matches!(c, ' ' | '\t' | '\n' | '\r') {
            out.push(c);
        }
        match c {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    out
}

pub(super) fn packed(raw: &RawValue) -> Option<Box<RawValue>> {
    RawValue::from_string(compact(raw.get())).ok()
}

/// A call's arguments where an interface takes nothing but an object.
pub(super) fn arguments(args: &str) -> Box<RawValue> {
    #[derive(serde::Serialize)]
    struct Invalid<'a> {
        invalid_json: &'a str,
    }

    let given = crate::tool::given(args);
    let object = Object::read(given).and_then(|_| RawValue::from_string(compact(given)).ok());
    let wrapped = || serde_json::value::to_raw_value(&Invalid { invalid_json: args }).ok();
    object.or_else(wrapped).unwrap_or_else(|| RawValue::NULL.to_owned())
}

/// What a body that is not JSON tells people: a proxy's page, a plain sentence, nothing.
pub(super) fn told(body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    let mut words = String::new();
    let mut rest = &*body;
    while let Some(tag) = rest.find('<') {
        words.push_str(&rest[..tag]);
        words.push(' ');
        rest = past_tag(&rest[tag..]);
    }
    words.push_str(rest);
    line(&words, TOLD_CHARS_MAX)
}

/// A provider's words in one line, as long as people read.
pub(super) fn words(text: &str) -> String {
    line(text, WORDS_CHARS_MAX)
}

fn line(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(chars_max).collect()
}

/// Behind the tag that a text begins with, and behind what it holds if nobody reads that.
fn past_tag(page: &str) -> &str {
    let behind = page.find('>').map_or("", |end| &page[end + 1..]);
    for (opened, closed) in [("<style", "</style"), ("<script", "</script"), ("<!--", "-->")] {
        let is_it = page.get(..opened.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(opened));
        if is_it {
            let lower = page.to_ascii_lowercase();
            return lower.find(closed).map_or("", |end| match closed {
                "-->" => &page[end + closed.len()..],
                _ => past_tag(&page[end..]),
            });
        }
    }
    behind
}

#[cfg(test)]
mod tests;
