//! What every dialect's rendering has in common: the stamp of place on each frame, how much of
//! each open item was sent, and catching up from a cursor.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use bytes::Bytes;
use polyloop_session::{
    Event, Growth, ItemId, LogEntry, Seq, SessionId, Stream, TurnId, Update, WaitId,
};

use crate::cursor::{push_number, push_place};
use crate::ids::Ids;
use crate::{Cursor, Dialect, Encoder, Frame, Insert, RunFrame, RunPart};

/// Room for the numbers of a stamp, so that most frames are put together in one piece of memory.
const STAMP_BYTES: usize = 64;

/// Bytes sent of each open item.
#[derive(Clone, Debug, Default)]
struct Sent {
    open: BTreeSet<ItemId>,
    bytes: BTreeMap<(ItemId, Stream), u64>,
    /// Of these nothing is sent before they are complete.
    held: BTreeSet<ItemId>,
}

impl Sent {
    fn of(&self, item: ItemId, stream: Stream) -> u64 {
        self.bytes.get(&(item, stream)).copied().unwrap_or(0)
    }

    fn close(&mut self, item: ItemId) {
        self.open.remove(&item);
        self.bytes.retain(|(open, _), _| *open != item);
    }
}

/// Where an encoder puts its messages. A body is a JSON object without its closing brace; the
/// view adds the place and the brace.
pub struct Out<'a> {
    session: &'a Session,
    sent: &'a mut Sent,
    bodies: Vec<Body>,
    muted: bool,
}

/// What frames say of their session, made once for all of them.
struct Session {
    /// Tells its ids from those of another.
    tag: String,
    /// How every stamp begins: up to the place.
    stamp: String,
}

impl Session {
    fn new(id: &SessionId) -> Session {
        let stamp = format!(",\"session_id\":\"{id}\",\"seq\":");
        Session { tag: Ids::new(Some(id)).tag(), stamp }
    }
}

struct Body {
    message: Message,
    structural: bool,
}

/// A message of an encoder: a JSON object without its closing brace.
#[derive(Clone, Debug, Default)]
pub struct Message {
    pub text: String,
    pub presents: Option<WaitId>,
    pub run: Option<RunFrame>,
    pub inserts: Vec<(usize, Insert)>,
    /// It stands between the events of a run and says how many there were.
    pub keeps_count: bool,
    /// What clients call the session, where that is not its id.
    pub session_as: Option<String>,
}

impl From<String> for Message {
    fn from(text: String) -> Message {
        Message { text, ..Message::default() }
    }
}

impl<'a> Out<'a> {
    fn new(session: &'a Session, sent: &'a mut Sent, muted: bool) -> Out<'a> {
        Out { session, sent, bodies: Vec::new(), muted }
    }

    /// A message that is there whether or not the item was streamed before.
    pub fn message(&mut self, message: impl Into<Message>) {
        self.bodies.push(Body { message: message.into(), structural: true });
    }

    /// A message that asks a person.
    pub fn request(&mut self, wait: WaitId, message: impl Into<Message>) {
        let message = Message { presents: Some(wait), ..message.into() };
        self.bodies.push(Body { message, structural: true });
    }

    /// The part of a whole text that was not sent yet; afterwards all of it counts as sent.
    pub fn rest<'t>(&mut self, item: ItemId, stream: Stream, whole: &'t str) -> Option<&'t str> {
        let sent = self.sent.of(item, stream);
        self.unsent(item, stream, 0, sent, whole)
    }

    /// The same of a text that will go on. Whoever has the entry already may not have the item from
    /// its start, and is sent that with all that is open.
    pub fn rest_so_far<'t>(
        &mut self,
        item: ItemId,
        stream: Stream,
        text: &'t str,
    ) -> Option<&'t str> {
        let left_out = self.muted || self.sent.held.contains(&item);
        // Of what has no characters yet there is no place.
        if left_out || text.is_empty() { None } else { self.rest(item, stream, text) }
    }

    /// The part of a growth that was not sent yet.
    pub fn fresh<'t>(&mut self, growth: &'t Growth) -> Option<&'t str> {
        let sent = self.sent.of(growth.item, growth.stream);
        self.unsent(growth.item, growth.stream, growth.offset, sent, &growth.text)
    }

    fn unsent<'t>(
        &mut self,
        item: ItemId,
        stream: Stream,
        offset: u64,
        sent: u64,
        text: &'t str,
    ) -> Option<&'t str> {
        let known = usize::try_from(sent.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut from = known.min(text.len());
        // A cursor may point into a character: then that character is sent whole.
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        self.sent.bytes.insert((item, stream), offset.saturating_add(text.len() as u64));
        let fresh = &text[from..];
        (!fresh.is_empty()).then_some(fresh)
    }

    /// A message that carries characters of a stream.
    pub fn streamed(&mut self, message: impl Into<Message>) {
        self.bodies.push(Body { message: message.into(), structural: false });
    }

    /// What tells the ids of this session from those of another.
    pub fn tag(&self) -> &str {
        &self.session.tag
    }

    /// Nobody reads what is put here: the encoder only catches up.
    pub fn is_muted(&self) -> bool {
        self.muted
    }
}

/// An encoder with its place in the log.
pub struct View {
    encoder: Box<dyn Encoder>,
    session: Session,
    at: Seq,
    sent: Sent,
    /// Events of the run it is in, as this view made them.
    events: (Option<TurnId>, u64),
}

impl View {
    /// A view of what comes after the entry `at`, which must not be inside a turn.
    pub fn new(dialect: &dyn Dialect, session: &SessionId, at: Seq) -> View {
        View {
            encoder: dialect.encoder(session),
            session: Session::new(session),
            at,
            sent: Sent::default(),
            events: (None, 0),
        }
    }

    /// Leaves what these items have shown so far to others.
    pub fn hold(&mut self, items: &[ItemId]) {
        self.sent.held.extend(items);
    }

    /// Renders an update.
    pub fn see(&mut self, update: &Update) -> Vec<Frame> {
        match update {
            Update::Logged(entry) => self.see_entry(entry, 0),
            Update::Grew(growth) => self.see_growth(growth),
            Update::Raw(raw) => {
                let mut out = Out::new(&self.session, &mut self.sent, false);
                self.encoder.raw(raw, &mut out);
                let bodies = out.bodies;
                self.stamp_all(bodies)
            }
        }
    }

    /// Takes in an entry from further back, which a later one names.
    pub fn recall(&mut self, entry: &LogEntry) {
        let mut out = Out::new(&self.session, &mut self.sent, true);
        self.encoder.entry(entry, &mut out);
    }

    /// The run that the view is in, and how many events of it there were.
    pub fn run(&self) -> (Option<TurnId>, u64) {
        self.events
    }

    /// Takes in an entry that the client has already.
    pub fn skip(&mut self, entry: &LogEntry) {
        let _ = self.entry(entry, true);
        self.passed(entry);
    }

    /// Continues where a client left off; call it when all entries up to the cursor's were
    /// skipped. What the cursor says of items that are not open is ignored.
    pub fn resume(&mut self, cursor: &Cursor) {
        for (item, stream, bytes) in &cursor.sent {
            if self.sent.open.contains(item) {
                self.sent.bytes.insert((*item, *stream), *bytes);
            }
        }
    }

    /// Renders an entry of which the client has the first `parts` messages.
    pub fn see_entry(&mut self, entry: &LogEntry, parts: u32) -> Vec<Frame> {
        let before = self.at;
        let bodies = self.entry(entry, false);
        let last = bodies.len().saturating_sub(1);
        let mut frames = Vec::with_capacity(bodies.len());
        let mut structural = 0;
        for (index, body) in bodies.into_iter().enumerate() {
            structural += u32::from(body.structural);
            // Whoever has the last message has the entry: a cursor that says less is not ours, and
            // must not hide what waits for an answer.
            if body.structural && structural <= parts && index != last {
                continue;
            }
            if index == last {
                self.passed(entry);
                frames.push(self.stamp(body, entry.seq, 0));
            } else {
                frames.push(self.stamp(body, before, structural));
            }
        }
        self.passed(entry);
        frames
    }

    fn see_growth(&mut self, growth: &Growth) -> Vec<Frame> {
        let mut out = Out::new(&self.session, &mut self.sent, false);
        self.encoder.growth(growth, &mut out);
        let bodies = out.bodies;
        self.stamp_all(bodies)
    }

    /// What a client that attaches without a cursor is owed of a running turn.
    pub fn opening(&mut self) -> Vec<Frame> {
        let mut out = Out::new(&self.session, &mut self.sent, false);
        self.encoder.opening(&mut out);
        let bodies = out.bodies;
        self.stamp_all(bodies)
    }

    /// What waits for an answer and was not sent by this view.
    pub fn pending(&mut self) -> Vec<Frame> {
        let mut out = Out::new(&self.session, &mut self.sent, false);
        self.encoder.pending(&mut out);
        let bodies = out.bodies;
        self.stamp_all(bodies)
    }

    fn entry(&mut self, entry: &LogEntry, muted: bool) -> Vec<Body> {
        if let Event::ItemStarted { .. } = entry.event {
            self.sent.open.insert(ItemId(entry.seq));
        }
        let mut out = Out::new(&self.session, &mut self.sent, muted);
        self.encoder.entry(entry, &mut out);
        let bodies = out.bodies;
        if muted {
            bodies.iter().for_each(|body| self.count(&body.message));
        }
        bodies
    }

    fn count(&mut self, message: &Message) {
        let counts = |(_, insert): &(usize, Insert)| *insert == Insert::EventNumber;
        let Some(run) = message.run.filter(|_| message.inserts.iter().any(counts)) else { return };
        if run.part == RunPart::Start || self.events.0 != Some(run.turn) {
            self.events = (Some(run.turn), 0);
        }
        self.events.1 += 1;
    }

    /// All of the entry was sent; until then its item counts as open.
    fn passed(&mut self, entry: &LogEntry) {
        if let Event::ItemCompleted { item, .. } = entry.event {
            self.sent.close(item);
        }
        self.at = entry.seq;
    }

    fn stamp_all(&self, bodies: Vec<Body>) -> Vec<Frame> {
        bodies.into_iter().map(|body| self.stamp(body, self.at, 0)).collect()
    }

    fn stamp(&self, body: Body, seq: Seq, parts: u32) -> Frame {
        let Message { mut text, presents, run, mut inserts, keeps_count, session_as } =
            body.message;
        let stamp_at = text.len();
        text.reserve(self.session.stamp.len() + STAMP_BYTES);
        match session_as {
            None => text.push_str(&self.session.stamp),
            Some(name) => {
                let _ = write!(text, ",\"session_id\":\"{name}\",\"seq\":");
            }
        }
        push_number(&mut text, seq.0);
        let counts = inserts.iter().any(|(_, insert)| *insert == Insert::EventNumber);
        if counts || keeps_count || parts > 0 || !self.sent.bytes.is_empty() {
            let sent = self.sent.bytes.iter().map(|((item, s), bytes)| (*item, *s, *bytes));
            text.push_str(",\"cursor\":\"");
            push_place(&mut text, seq, parts, sent);
            if counts || keeps_count {
                text.push('!');
                let number = if counts { Insert::EventNumber } else { Insert::EventCount };
                inserts.push((text.len(), number));
            }
            text.push('"');
        }
        text.push('}');
        let text = Bytes::from(text);
        Frame { text, stamp_at: Some(stamp_at), presents, run, inserts }
    }

    /// The stamp of a client that has everything this view has seen.
    pub fn place(&self) -> Bytes {
        let body = Body { message: Message::default(), structural: false };
        self.stamp(body, self.at, 0).text
    }

    /// The place of a client that has everything this view has seen.
    pub fn cursor(&self) -> Cursor {
        let sent = self.sent.bytes.iter().map(|((item, s), bytes)| (*item, *s, *bytes));
        Cursor { seq: self.at, parts: 0, sent: sent.collect(), events: None }
    }
}
