//! A request's body in pieces: most of it is the same in every request of every session, and is
//! sent from where it is kept.

use std::io;

use crate::tool::Written;

/// A shorter text is copied: it costs less than a piece more.
const SHARED_BYTES_MIN: usize = 1024;

/// The bytes of a body, some of them shared with others. Cheap to make where little is its own.
#[derive(Default)]
pub struct Pieces {
    own: Vec<u8>,
    /// Before how many bytes of its own each one stands, in order.
    shared: Vec<(usize, Written)>,
}

impl Pieces {
    /// With room for so many bytes of its own; of what is written, `known` is shared and not
    /// copied.
    pub(super) fn filling(own_bytes: usize, known: Vec<Written>) -> Filling {
        let pieces = Pieces { own: Vec::with_capacity(own_bytes), shared: Vec::new() };
        Filling { pieces, known }
    }

    pub fn bytes_len(&self) -> usize {
        self.own.len() + self.shared.iter().map(|(_, text)| text.json().len()).sum::<usize>()
    }

    /// One behind the other; none of them is empty.
    pub fn each(&self) -> Vec<&[u8]> {
        let mut all = Vec::with_capacity(2 * self.shared.len() + 1);
        let mut from = 0;
        for (at, text) in &self.shared {
            all.extend([&self.own[from..*at], text.json().as_bytes()]);
            from = *at;
        }
        all.push(&self.own[from..]);
        all.retain(|piece| !piece.is_empty());
        all
    }

    /// All of it, in one.
    pub fn whole(&self) -> Vec<u8> {
        self.each().concat()
    }
}

impl From<&[u8]> for Pieces {
    fn from(bytes: &[u8]) -> Pieces {
        Pieces { own: bytes.to_vec(), shared: Vec::new() }
    }
}

/// A body that is being written.
pub(super) struct Filling {
    pieces: Pieces,
    known: Vec<Written>,
}

impl Filling {
    pub fn done(self) -> Pieces {
        self.pieces
    }
}

impl io::Write for Filling {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    /// Called for every word and sign.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Pieces { own, shared } = &mut self.pieces;
        if bytes.len() >= SHARED_BYTES_MIN {
            // The very same bytes, not just equal ones.
            let is_it = |text: &&Written| std::ptr::eq(text.json().as_bytes(), bytes);
            if let Some(text) = self.known.iter().find(is_it) {
                shared.push((own.len(), text.clone()));
                return Ok(());
            }
        }
        own.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_known_is_not_copied_and_stands_where_it_was_written() {
        let long = Written::of(&"x".repeat(SHARED_BYTES_MIN));
        let (short, other) = (Written::of("y"), Written::of(&"z".repeat(SHARED_BYTES_MIN)));
        let mut filling = Pieces::filling(16, vec![long.clone(), short.clone()]);
        for text in [&long, &short, &long, &other, &long] {
            filling.write_all(text.json().as_bytes()).unwrap();
        }
        let pieces = filling.done();
        let [long, short, other] = [&long, &short, &other].map(Written::json);
        assert_eq!(pieces.whole(), [long, short, long, other, long].concat().into_bytes());
        assert_eq!(pieces.bytes_len(), pieces.whole().len());
        let at = |piece: &[u8]| piece.as_ptr();
        let shared = pieces.each().iter().filter(|piece| at(piece) == long.as_ptr()).count();
        assert_eq!((shared, pieces.own.len()), (3, short.len() + other.len()));
    }

    #[test]
    fn a_body_without_anything_has_no_pieces() {
        assert!(Pieces::default().each().is_empty());
    }
}
