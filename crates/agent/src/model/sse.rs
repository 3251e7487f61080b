//! Server-sent events, read as they come.
//!
//! Takes bytes in pieces of any size and gives whole events; what the pieces were makes no
//! difference. Line ends may be LF, CR LF or CR; a byte order mark at the start, comments, `id`
//! and `retry` are passed over without being kept. An event that is still open when the stream
//! ends is none. Holds at most one event, and at most `EVENT_BYTES_MAX` of it.

/// Of the data of one event; a longer one ends the stream.
pub const EVENT_BYTES_MAX: usize = 12 * 1024 * 1024;
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
    data: Vec<u8>,
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
    Field(Vec<u8>),
    /// Behind the colon; one space there is no part of the value.
    Colon(Kind),
    Value(Kind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Name,
    Other,
}

impl Default for Line {
    fn default() -> Line {
        Line::Field(Vec::new())
    }
}

impl Parser {
    pub fn new() -> Parser {
        Parser::default()
    }

    /// The events that end in these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
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
                events.extend(self.line_ended());
                rest = &rest[until + 1..];
            } else {
                rest = &[];
            }
        }
        Ok(events)
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
                    self.line = Line::Field(MARK[..met].to_vec());
                    return rest;
                }
            }
        }
    }

    /// More of the open line, without its end.
    fn take(&mut self, mut part: &[u8]) -> Result<(), TooLong> {
        loop {
            match &mut self.line {
                Line::Field(name) => match part.iter().position(|b| *b == b':') {
                    Some(colon) => {
                        extend_bounded(name, &part[..colon], FIELD_BYTES_MAX);
                        self.line = Line::Colon(kind(name));
                        self.begin_value();
                        part = &part[colon + 1..];
                    }
                    None => {
                        extend_bounded(name, part, FIELD_BYTES_MAX);
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
                    self.data.push(b'\n');
                }
                self.has_data = true;
            }
            Line::Colon(Kind::Name) => self.name.clear(),
            Line::Colon(Kind::Other) | Line::Field(_) | Line::Value(_) => {}
        }
    }

    fn grow(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.data.len() + part.len() > EVENT_BYTES_MAX {
            return Err(TooLong);
        }
        self.data.extend_from_slice(part);
        Ok(())
    }

    fn line_ended(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let Line::Field(name) = line else { return None };
        if !name.is_empty() {
            // A field without a colon has an empty value.
            self.line = Line::Colon(kind(&name));
            self.begin_value();
            self.line = Line::default();
            return None;
        }
        let name = String::from_utf8_lossy(&std::mem::take(&mut self.name)).into_owned();
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then_some(Event { name, data })
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
