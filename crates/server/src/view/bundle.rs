//! Frames of one dialect that go out together, made once for all who get them: their bytes stand
//! one behind the other as a socket takes them, each with its WebSocket head.

use std::ops::Range;

use bytes::Bytes;
use polyloop_dialects::{Frame, RunPart};

/// The longest head of a frame that a server sends.
const HEAD_BYTES_MAX: usize = 10;
/// A whole text message, not masked.
const TEXT: u8 = 0x81;

pub struct Bundle {
    pub frames: Vec<Frame>,
    pub text_bytes: usize,
    /// Their bytes, where all who get them are sent the same.
    pub shared: Option<Bytes>,
    /// Where in these the last stamp of place is.
    stamp: Option<Range<usize>>,
}

impl Bundle {
    pub fn new(frames: Vec<Frame>) -> Bundle {
        let text_bytes = frames.iter().map(|frame| frame.text.len()).sum();
        let mut bundle = Bundle { frames, text_bytes, shared: None, stamp: None };
        if bundle.frames.iter().all(is_plain) {
            bundle.share();
        }
        bundle
    }

    /// The place of those who have all of it, where that is the same for all.
    pub fn stamp(&self) -> Option<&[u8]> {
        self.shared.as_ref()?.get(self.stamp.clone()?)
    }

    /// Whether a run that somebody may wait for is over with this frame.
    pub fn ends_run(frame: &Frame) -> bool {
        frame.run.is_some_and(|run| match run.part {
            RunPart::End | RunPart::Failed | RunPart::Interrupted => run.message.is_some(),
            RunPart::Start | RunPart::Event => false,
        })
    }

    /// Puts a text message behind what is there.
    pub fn push(out: &mut Vec<u8>, text: &[u8]) {
        out.reserve(text.len() + HEAD_BYTES_MAX);
        out.push(TEXT);
        match (u8::try_from(text.len()), u16::try_from(text.len())) {
            (Ok(length @ ..126), _) => out.push(length),
            (_, Ok(length)) => {
                out.push(126);
                out.extend(length.to_be_bytes());
            }
            (_, Err(_)) => {
                out.push(127);
                out.extend((text.len() as u64).to_be_bytes());
            }
        }
        out.extend_from_slice(text);
    }

    fn share(&mut self) {
        let mut bytes = Vec::with_capacity(self.text_bytes + self.frames.len() * HEAD_BYTES_MAX);
        let (mut stamp, mut ends) = (None, Vec::new());
        for frame in &self.frames {
            Bundle::push(&mut bytes, &frame.text);
            if let Some(at) = frame.stamp_at {
                stamp = Some(bytes.len() - (frame.text.len() - at)..bytes.len());
            }
            ends.push(bytes.len());
        }
        let bytes = Bytes::from(bytes);
        // One piece of memory holds them all.
        for (frame, end) in self.frames.iter_mut().zip(ends) {
            frame.text = bytes.slice(end - frame.text.len()..end);
        }
        (self.shared, self.stamp) = (Some(bytes), stamp);
    }
}

/// Nothing in it is one client's own, and nobody has to act on it.
fn is_plain(frame: &Frame) -> bool {
    frame.inserts.is_empty() && frame.presents.is_none() && !Bundle::ends_run(frame)
}

#[cfg(test)]
mod tests {
    use polyloop_dialects::Insert;

    use super::*;

    #[test]
    fn heads_say_how_long_a_text_is() {
        for (length, head) in [
            (0, vec![0x81, 0]),
            (125, vec![0x81, 125]),
            (126, vec![0x81, 126, 0, 126]),
            (255, vec![0x81, 126, 0, 255]),
            (65_535, vec![0x81, 126, 255, 255]),
            (65_536, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut out = Vec::new();
            Bundle::push(&mut out, &vec![b'x'; length]);
            assert_eq!(out[..head.len()], head, "{length}");
            assert_eq!(out.len(), head.len() + length);
        }
    }

    #[test]
    fn what_all_get_alike_is_shared_with_its_last_stamp() {
        let stamped = |text: &str| Frame::unstamped(text.to_owned()).stamped(b",s}");
        let bundle = Bundle::new(vec![stamped("{a}"), Frame::unstamped("{b}")]);
        assert_eq!(bundle.shared.as_deref(), Some(&b"\x81\x05{a,s}\x81\x03{b}"[..]));
        assert_eq!(bundle.stamp(), Some(&b",s}"[..]));
        assert_eq!(bundle.frames[1].text, "{b}");
        let own = Frame { inserts: vec![(1, Insert::EventNumber)], ..Frame::unstamped("{}") };
        let bundle = Bundle::new(vec![stamped("{a}"), own]);
        assert!(bundle.shared.is_none() && bundle.stamp().is_none());
        assert_eq!((bundle.frames.len(), bundle.text_bytes), (2, 7));
    }
}
