//! Gives the messages of an entry their ids, in order.
//!
//! An id is made from a place in the log, so it is the same whenever the message is sent:
//! `evt-<entry>-<part>`, and for characters `evt-<item><t|a|o><offset>`, each with a mark of the
//! session, since one connection may speak of several.

use polyloop_session::policy::Mode;
use polyloop_session::{ItemId, Seq, Stream};

use crate::conn::{Message, Out};
use crate::cursor::{letter, push_number};
use crate::unified::wire::{SessionInfo, Status, Told};
use crate::{Insert, MESSAGE_BYTES, with_fields};

/// Enough for most ids, with the mark of their session.
const ID_BYTES: usize = 48;

/// The messages of one entry.
pub(super) struct Parts<'o, 's> {
    pub out: &'o mut Out<'s>,
    seq: Seq,
    part: u32,
}

impl<'o, 's> Parts<'o, 's> {
    pub(super) fn new(seq: Seq, out: &'o mut Out<'s>) -> Parts<'o, 's> {
        Parts { out, seq, part: 0 }
    }

    /// The id of the message that is told next.
    pub(super) fn next_id(&self) -> String {
        entry_id(self.seq, self.part)
    }

    pub(super) fn tell<T: Told>(&mut self, own: &T) {
        let text = body(self.next_id(), own, self.out);
        self.part += 1;
        self.out.message(text);
    }

    /// The mode, in the word of each connection.
    pub(super) fn tell_mode(&mut self, mode: Mode) {
        let own = SessionInfo { permission_mode: Some(""), ..SessionInfo::new(Status::Active) };
        let text = body(self.next_id(), &own, self.out);
        self.part += 1;
        let between_quotes = text.len().saturating_sub(1);
        let inserts = vec![(between_quotes, Insert::Mode(mode))];
        self.out.message(Message { inserts, ..text.into() });
    }
}

pub(super) fn entry_id(seq: Seq, part: u32) -> String {
    let mut id = String::with_capacity(ID_BYTES);
    id.push_str("evt-");
    push_number(&mut id, seq.0);
    id.push('-');
    push_number(&mut id, part.into());
    id
}

/// Characters of an item.
pub(super) fn stream<T: Told>(
    (item, stream, offset): (ItemId, Stream, u64),
    own: &T,
    out: &mut Out<'_>,
) {
    let mut id = String::with_capacity(ID_BYTES);
    id.push_str("evt-");
    push_number(&mut id, item.0.0);
    id.push(letter(stream));
    push_number(&mut id, offset);
    let text = body(id, own, out);
    out.streamed(text);
}

/// A message as JSON without its closing brace, unless nobody reads it.
pub(super) fn body<T: Told>(mut id: String, own: &T, out: &Out<'_>) -> String {
    if out.is_muted() {
        return String::new();
    }
    id.push('-');
    id.push_str(out.tag());
    let mut text = String::with_capacity(MESSAGE_BYTES);
    for part in ["{\"type\":\"", T::TYPE, "\",\"id\":\"", &id, "\""] {
        text.push_str(part);
    }
    with_fields(text, own)
}
