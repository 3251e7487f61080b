//! Server-sent events, read as they come.
//!
//! Takes bytes in pieces of any size and gives whole events; what the pieces were makes no
//! difference. Line ends may be LF, CR LF or CR; a byte order mark at the start, comments, `id`
//! and `retry` are passed over without being kept. An event that is still open when the stream
//! ends is none. Holds at most one event, and at most `EVENT_BYTES_MAX` of it.

/// Of the data of one event; a longer one ends the stream.
pub const EVENT_BYTES_MAX: usize = 12 * 1024 * 1024;
/// Of the room for an event's data, from one event to the next.
const DATA_BYTES_KEPT: usize = 1024;
/// Of a field's name: longer ones are no field of ours.
const FIELD_BYTES_MAX: usize = 16;
/// Of an event's name.
const NAME_BYTES_MAX: usize = 128;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Empty when the stream gave none.
    pub name: String,
    pub data: Vec<u8>,
}

/// More came for one event than is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

#[derive(Debug, Default)]
pub struct Parser {
    name: Vec<u8>,
    /// The open one; its room is kept for the next.
    event: Event,
    has_data: bool,
    line: Line,
    /// The last byte was a CR, so that an LF belongs to it.
    after_cr: bool,
    seen: Mark,
}

/// Whether the stream has begun: a byte order mark may stand there only.
#[derive(Debug, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    Nothing,
    Half(u8),
    Past,
}

/// Where in a line the next byte falls.
#[derive(Debug)]
enum Line {
    /// In the field's name, so far.
    Field(FieldName),
    /// Behind the colon; one space there is no part of the value.
    Colon(Kind),
    Value(Kind),
}

/// As much of a name as can matter; what is longer is told apart by its length.
#[derive(Debug, Default)]
struct FieldName {
    bytes: [u8; FIELD_BYTES_MAX],
    length: usize,
}

impl FieldName {
    fn add(&mut self, part: &[u8]) {
        let room = FIELD_BYTES_MAX.saturating_sub(self.length);
        let part = &part[..part.len().min(room)];
        self.bytes[self.length..self.length + part.len()].copy_from_slice(part);
        self.length += part.len();
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Name,
    Other,
}

impl Default for Line {
    fn default() -> Line {
        Line::Field(FieldName::default())
    }
}

impl Parser {
    pub fn new() -> Parser {
        Parser::default()
    }

    /// The events that end in these bytes.
    #[cfg(test)]
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        self.read(bytes, |event| events.push(event.clone()))?;
        Ok(events)
    }

    /// Tells of the events that end in these bytes.
    pub fn read(&mut self, bytes: &[u8], mut tell: impl FnMut(&Event)) -> Result<(), TooLong> {
        let mut rest = self.past_mark(bytes);
        while let Some(&byte) = rest.first() {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let until = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            self.take(&rest[..until])?;
            if let Some(&end) = rest.get(until) {
                self.after_cr = end == b'\r';
                self.line_ended(&mut tell);
                rest = &rest[until + 1..];
            } else {
                rest = &[];
            }
        }
        Ok(())
    }

    fn past_mark<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
        let mut rest = bytes;
        loop {
            let met = match self.seen {
                Mark::Past => return rest,
                Mark::Nothing => 0,
                Mark::Half(met) => usize::from(met),
            };
            match rest.first() {
                None => return rest,
                Some(byte) if *byte == MARK[met] => {
                    rest = &rest[1..];
                    self.seen = match met {
                        2 => Mark::Past,
                        _ => Mark::Half(met as u8 + 1),
                    };
                }
                Some(_) => {
                    self.seen = Mark::Past;
                    // Half a mark is the beginning of a field nobody knows.
                    let mut begun = FieldName::default();
                    begun.add(&MARK[..met]);
                    self.line = Line::Field(begun);
                    return rest;
                }
            }
        }
    }

    /// More of the open line, without its end.
    fn take(&mut self, mut part: &[u8]) -> Result<(), TooLong> {
        loop {
            match &mut self.line {
                Line::Field(name) => match memchr::memchr(b':', part) {
                    Some(colon) => {
                        name.add(&part[..colon]);
                        self.line = Line::Colon(kind(name.get()));
                        self.begin_value();
                        part = &part[colon + 1..];
                    }
                    None => {
                        name.add(part);
                        return Ok(());
                    }
                },
                Line::Colon(kind) => {
                    let Some(&first) = part.first() else { return Ok(()) };
                    self.line = Line::Value(*kind);
                    part = if first == b' ' { &part[1..] } else { part };
                }
                Line::Value(Kind::Data) => return self.grow(part),
                Line::Value(Kind::Name) => {
                    extend_bounded(&mut self.name, part, NAME_BYTES_MAX);
                    return Ok(());
                }
                Line::Value(Kind::Other) => return Ok(()),
            }
        }
    }

    /// A value begins: data goes on in a new line, a name is replaced.
    fn begin_value(&mut self) {
        match self.line {
            Line::Colon(Kind::Data) => {
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.has_data = true;
            }
            Line::Colon(Kind::Name) => self.name.clear(),
            Line::Colon(Kind::Other) | Line::Field(_) | Line::Value(_) => {}
        }
    }

    fn grow(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.event.data.len() + part.len() > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        self.event.data.extend_from_slice(part);
        Ok(())
    }

    fn line_ended(&mut self, tell: &mut impl FnMut(&Event)) {
        let Line::Field(name) = std::mem::take(&mut self.line) else { return };
        if !name.get().is_empty() {
            // A field without a colon has an empty value.
            self.line = Line::Colon(kind(name.get()));
            self.begin_value();
            self.line = Line::default();
            return;
        }
        if !self.name.is_empty() {
            self.event.name = String::from_utf8_lossy(&std::mem::take(&mut self.name)).into_owned();
        }
        if std::mem::take(&mut self.has_data) {
            tell(&self.event);
        }
        self.event.name.clear();
        self.event.data.clear();
        self.event.data.shrink_to(DATA_BYTES_KEPT);
    }
}

fn kind(name: &[u8]) -> Kind {
    match name {
        b"data" => Kind::Data,
        b"event" => Kind::Name,
        _ => Kind::Other,
    }
}

fn extend_bounded(name: &mut Vec<u8>, part: &[u8], bytes_max: usize) {
    let room = bytes_max.saturating_sub(name.len());
    name.extend_from_slice(&part[..part.len().min(room)]);
}

#[cfg(test)]
mod tests;
