//! What a message of a session's subject says beside its lines, in headers.

use async_nats::header::HeaderMap;
use polyloop_session::Seq;

/// The last entry of the session, with this message.
const SEQ: &str = "Polyloop-Seq";
/// How many lines the session has, with this message.
const LINES: &str = "Polyloop-Lines";
/// What the names of its long texts begin with.
const OBJECTS: &str = "Polyloop-Objects";
/// The object that holds its lines, where they are too many for a message.
const OBJECT: &str = "Polyloop-Object";
/// Who wrote it, and as which of their messages: no other is named the same.
const BY: &str = "Polyloop-By";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub seq: Seq,
    pub lines: u64,
    pub objects: String,
    pub object: Option<String>,
    pub by: String,
}

impl Marks {
    /// A message without them is not ours: it says nothing, and changes nothing.
    pub fn read(headers: &HeaderMap) -> Option<Marks> {
        let text = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        Some(Marks {
            seq: Seq(text(SEQ)?.parse().ok()?),
            lines: text(LINES)?.parse().ok()?,
            objects: text(OBJECTS)?,
            object: text(OBJECT),
            by: text(BY)?,
        })
    }

    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(SEQ, self.seq.0.to_string());
        headers.insert(LINES, self.lines.to_string());
        headers.insert(OBJECTS, self.objects.as_str());
        if let Some(object) = &self.object {
            headers.insert(OBJECT, object.as_str());
        }
        headers.insert(BY, self.by.as_str());
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written() {
        let marks = Marks {
            seq: Seq(7),
            lines: 9,
            objects: "s.1/4".into(),
            object: Some("s.1/4/batch".into()),
            by: "4-2".into(),
        };
        let plain = Marks { object: None, ..marks.clone() };
        for marks in [marks, plain] {
            assert_eq!(Marks::read(&marks.headers()), Some(marks));
        }
        assert_eq!(Marks::read(&HeaderMap::new()), None);
    }
}
