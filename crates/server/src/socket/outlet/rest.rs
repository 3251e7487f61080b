//! What a socket has not taken yet, piece by piece.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

/// What the socket has not taken yet.
#[derive(Default)]
pub(super) struct Rest {
    pub(super) pieces: VecDeque<Bytes>,
    pub(super) bytes: usize,
}

impl Rest {
    pub(super) fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn advance(&mut self, mut taken: usize) {
        self.bytes -= taken;
        while let Some(piece) = self.pieces.front_mut() {
            if taken < piece.len() {
                return piece.advance(taken);
            }
            taken -= piece.len();
            self.pieces.pop_front();
        }
        // Seldom used: an idle connection keeps no room for it.
        self.pieces = VecDeque::new();
    }
}
