//! JSON as models write it: with commas too many or too few, comments, single quotes, bare names,
//! words of other languages, and sometimes cut off.
//!
//! Total, and linear in the text: what is read in vain is read a few times at most.

use serde_json::{Map, Number, Value};

/// Values inside one another.
const DEPTH_MAX: u32 = 100;
/// How many times its length is read of a text, at most.
const TIMES_READ_MAX: usize = 4;
/// Of a short text more is read.
const BYTES_READ_MIN: usize = 64 * 1024;

/// How well something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// It stands in something that was cut.
    Inside,
    /// It ends before its end.
    Cut,
    /// With something that no parser takes, and that can mean one thing only.
    Loose,
    Strict,
}

/// A value that stands in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub value: Value,
    pub form: Form,
}

/// All objects and arrays that stand in a text, none inside another but for one that was cut. Whether something that began
/// like one was none.
pub fn all(text: &str) -> (Vec<Found>, bool) {
    let (mut found, mut broken, mut inside, mut at) = (Vec::new(), false, false, 0);
    let mut left = text.len().saturating_mul(TIMES_READ_MAX).max(BYTES_READ_MIN);
    while let Some(start) = text[at..].find(['{', '[']).map(|start| at + start) {
        let mut reader = Reader { text, at: start, form: Form::Strict, torn: false };
        let value = reader.value(0);
        let read = reader.at - start;
        match value {
            Some(value) if reader.form == Form::Cut => {
                if !inside {
                    found.push(Found { value, form: Form::Cut });
                }
                inside = true;
                at = start + 1;
            }
            Some(value) => {
                let form = if inside { Form::Inside } else { reader.form };
                found.push(Found { value, form });
                at = reader.at;
            }
            None => {
                broken = true;
                at = start + 1;
            }
        }
        match left.checked_sub(read) {
            Some(less) => left = less,
            None => break,
        }
    }
    (found, broken)
}

/// The last of those that are written best and are wanted: what comes before it is a draft.
pub fn last<T>(found: &[Found], wanted: impl Fn(&Value) -> Option<T>) -> Option<(T, Form)> {
    let mut best: Option<(T, Form)> = None;
    for Found { value, form } in found {
        if best.as_ref().is_none_or(|(_, best)| form >= best)
            && let Some(value) = wanted(value)
        {
            best = Some((value, *form));
        }
    }
    best
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    form: Form,
    /// The text ends inside a word, a number or a name, and not only before its brackets.
    torn: bool,
}

/// What became of one entry of an array or object.
enum Entry<T> {
    Read(T),
    /// The text ends inside it.
    Cut,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn takes(&mut self, c: char) -> bool {
        let has = self.next() == Some(c);
        if has {
            self.at += c.len_utf8();
        }
        has
    }

    fn less(&mut self, form: Form) {
        self.form = self.form.min(form);
    }

    /// White space and comments.
    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let text = rest.trim_start();
            self.at += rest.len() - text.len();
            let comment = if text.starts_with("//") {
                text.find('\n').unwrap_or(text.len())
            } else if text.starts_with("/*") {
                text.find("*/").map_or(text.len(), |end| end + 2)
            } else {
                return;
            };
            self.at += comment;
            self.less(Form::Loose);
        }
    }

    /// `None` where it is no JSON at all.
    fn value(&mut self, depth: u32) -> Option<Value> {
        if depth >= DEPTH_MAX {
            return None;
        }
        match self.next()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote @ ('"' | '\'') => match self.string(quote) {
                Entry::Read(text) => Some(Value::String(text)),
                Entry::Cut => None,
            },
            c if c.is_ascii_digit() || c == '-' || c == '+' || c == '.' => self.number(),
            _ => self.word(),
        }
    }

    fn array(&mut self, depth: u32) -> Option<Value> {
        self.at += 1;
        let mut values = Vec::new();
        while let Between::Next = self.between(']', values.is_empty())? {
            match self.entry(depth)? {
                // What was cut inside is no entry.
                Entry::Read(_) if self.torn => break,
                Entry::Read(value) => values.push(value),
                Entry::Cut => break,
            }
        }
        Some(Value::Array(values))
    }

    fn object(&mut self, depth: u32) -> Option<Value> {
        self.at += 1;
        let mut object = Map::new();
        while let Between::Next = self.between('}', object.is_empty())? {
            let name = match self.next()? {
                quote @ ('"' | '\'') => match self.string(quote) {
                    Entry::Read(name) => name,
                    Entry::Cut => break,
                },
                _ => self.name()?,
            };
            self.space();
            if self.rest().is_empty() {
                self.less(Form::Cut);
                self.torn = true;
                break;
            }
            if !self.takes(':') {
                return None;
            }
            self.space();
            match self.entry(depth)? {
                Entry::Read(value) => object.insert(name, value),
                Entry::Cut => break,
            };
        }
        Some(Value::Object(object))
    }

    /// What stands before the next entry: a comma, which may be missing, or the end.
    fn between(&mut self, end: char, first: bool) -> Option<Between> {
        self.space();
        let comma = self.takes(',');
        self.space();
        if self.takes(end) {
            if comma {
                self.less(Form::Loose);
            }
            return Some(Between::End);
        }
        match self.next() {
            // Only what closes it is missing, or more.
            None => {
                self.less(Form::Cut);
                Some(Between::End)
            }
            Some(',' | ']' | '}') => None,
            Some(_) => {
                if comma == first {
                    self.less(Form::Loose);
                }
                Some(Between::Next)
            }
        }
    }

    fn entry(&mut self, depth: u32) -> Option<Entry<Value>> {
        match self.value(depth + 1) {
            Some(value) => Some(Entry::Read(value)),
            None if self.rest().is_empty() => {
                self.less(Form::Cut);
                self.torn = true;
                Some(Entry::Cut)
            }
            None => None,
        }
    }

    fn string(&mut self, quote: char) -> Entry<String> {
        self.at += 1;
        if quote != '"' {
            self.less(Form::Loose);
        }
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find([quote, '\\']) else {
                self.at = self.text.len();
                self.less(Form::Cut);
                self.torn = true;
                return Entry::Cut;
            };
            let plain = &rest[..end];
            // Models write line ends as they are.
            if plain.contains(|c: char| c < ' ') {
                self.less(Form::Loose);
            }
            text.push_str(plain);
            self.at += end + 1;
            if rest[end..].starts_with(quote) {
                return Entry::Read(text);
            }
            self.escape(&mut text);
        }
    }

    fn escape(&mut self, text: &mut String) {
        let Some(c) = self.next() else { return };
        self.at += c.len_utf8();
        match c {
            '"' | '\\' | '/' => text.push(c),
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'u' => match self.unicode() {
                Some(c) => text.push(c),
                None => text.push(char::REPLACEMENT_CHARACTER),
            },
            // `\d`, `\'`: not allowed, and meant as it stands.
            other => {
                self.less(Form::Loose);
                if other != '\'' {
                    text.push('\\');
                }
                text.push(other);
            }
        }
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Behind `\u`; what lies beyond the first plane is written as two.
    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        let before = self.at;
        if self.rest().starts_with("\\u") {
            self.at += 2;
            if let Some(second @ 0xdc00..0xe000) = self.hex() {
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
        }
        self.at = before;
        None
    }

    fn number(&mut self) -> Option<Value> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let number = match serde_json::from_str::<Number>(&rest[..end]) {
            Ok(number) => number,
            Err(_) => {
                self.less(Form::Loose);
                let plain = rest[..end].replace('_', "");
                Number::from_f64(plain.parse().ok()?)?
            }
        };
        self.at += end;
        Some(Value::Number(number))
    }

    /// A name without quotes.
    fn name(&mut self) -> Option<String> {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        self.less(Form::Loose);
        (end > 0).then(|| rest[..end].to_owned())
    }

    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let value = match &rest[..end] {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            "True" | "yes" => self.loosely(Value::Bool(true)),
            "False" | "no" => self.loosely(Value::Bool(false)),
            "None" | "undefined" | "NaN" => self.loosely(Value::Null),
            // It may be the beginning of one.
            _ if end == rest.len() => {
                self.at = self.text.len();
                return None;
            }
            _ => return None,
        };
        self.at += end;
        Some(value)
    }

    fn loosely(&mut self, value: Value) -> Value {
        self.less(Form::Loose);
        value
    }
}

enum Between {
    Next,
    End,
}
