//! What is kept of an answer's parts for the way back: signatures, on the part they came with.
//!
//! A text that came in parts is one text to people, so what is kept says where the parts were.
//! This is the form of our own `Opaque`, which only `encode` and `decode` know.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::model::json::{self, Fields, Object};

/// Marks a call that had no id.
const NO_ID: &str = "noId";
/// Parts without anything to show that stood behind a call.
const AFTER: &str = "after";
/// What a call held that nobody knows.
const CALL: &str = "functionCall";

/// One part of a text.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Piece {
    Text {
        bytes: usize,
        #[serde(skip_serializing_if = "Fields::is_empty")]
        fields: Fields,
    },
    /// Without anything to show.
    Whole { part: Box<RawValue> },
}

#[derive(Serialize)]
struct Pieces<'a> {
    parts: &'a [Piece],
}

/// `None` where the parts were nothing but text.
pub(super) fn text(pieces: &[Piece]) -> Option<String> {
    let plain = |piece: &Piece| matches!(piece, Piece::Text { fields, .. } if fields.is_empty());
    if pieces.iter().all(plain) {
        return None;
    }
    serde_json::to_string(&Pieces { parts: pieces }).ok()
}

/// The parts of a text, as they were. `None` when they are not of this text.
pub(super) fn pieces(kept: &Object<'_>, text: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut end = 0_usize;
    for piece in kept.list("parts") {
        let piece = Object::read(piece.get())?;
        if let Some(part) = piece.raw("part") {
            pieces.push(Piece::Whole { part: json::packed(part)? });
            continue;
        }
        let bytes = usize::try_from(piece.count("bytes")?).ok()?;
        end = end.checked_add(bytes)?;
        let fields = piece.object("fields").unwrap_or_default().without(&["text", "thought"]);
        text.is_char_boundary(end).then_some(())?;
        pieces.push(Piece::Text { bytes, fields });
    }
    (end == text.len()).then_some(pieces)
}

/// A call's part, beside its name and arguments.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub has_id: bool,
    /// Of the part.
    pub rest: Fields,
    /// Of the call inside it.
    pub inner: Fields,
    pub after: Vec<Box<RawValue>>,
}

impl Call {
    /// Never nothing: that it is there says whose call it was.
    pub fn json(self) -> String {
        let mut fields = self.rest;
        if !self.inner.is_empty() {
            fields.set(CALL, to_raw_value(&self.inner).ok());
        }
        if !self.has_id {
            fields.set(NO_ID, to_raw_value(&true).ok());
        }
        if !self.after.is_empty() {
            fields.set(AFTER, to_raw_value(&self.after).ok());
        }
        fields.json()
    }

    pub fn read(kept: &Object<'_>) -> Call {
        let inner = kept.object(CALL).unwrap_or_default();
        Call {
            has_id: !kept.is_true(NO_ID),
            rest: kept.without(&[CALL, NO_ID, AFTER]),
            inner: inner.without(&["id", "name", "args"]),
            after: kept.list(AFTER).into_iter().filter_map(json::packed).collect(),
        }
    }
}
