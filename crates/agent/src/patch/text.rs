//! Lines of bytes with their own endings.
//!
//! Never decodes: a file need not be UTF-8 to be edited.

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Only a file's last line has none.
    None,
    Lf,
    CrLf,
    Cr,
}

impl Ending {
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::None => b"",
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Cr => b"\r",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) ending: Ending,
}

/// Splits after every LF, CRLF and lone CR; joining the lines gives the same bytes again.
pub(super) fn lines(bytes: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r');
        let (text, tail) = rest.split_at(end.unwrap_or(rest.len()));
        let ending = match tail {
            [] => Ending::None,
            [b'\r', b'\n', ..] => Ending::CrLf,
            [b'\r', ..] => Ending::Cr,
            _ => Ending::Lf,
        };
        lines.push(Line { text, ending });
        rest = tail.get(ending.bytes().len()..).unwrap_or_default();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_every_byte_and_know_their_endings() {
        let bytes = b"a\r\nb\rc\n\n\rlast";
        let lines = lines(bytes);
        let endings: Vec<Ending> = lines.iter().map(|line| line.ending).collect();
        use Ending::{Cr, CrLf, Lf};
        assert_eq!(endings, [CrLf, Cr, Lf, Lf, Cr, Ending::None]);
        let joined: Vec<u8> =
            lines.iter().flat_map(|line| [line.text, line.ending.bytes()].concat()).collect();
        assert_eq!(joined, bytes);
    }
}
