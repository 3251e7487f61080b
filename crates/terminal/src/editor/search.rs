//! Looks for an earlier line that contains some words, the newest first.

use super::history::History;

#[derive(Debug)]
pub(super) struct Search {
    pub words: String,
    /// How far back to begin.
    pub at: usize,
    /// What stood in the line before.
    pub written: String,
}

impl Search {
    pub fn begin(written: &str) -> Search {
        Search { words: String::new(), at: 0, written: written.to_owned() }
    }

    pub fn find(&self, history: &History) -> Option<(usize, String)> {
        if self.words.is_empty() {
            return None;
        }
        let mut at = self.at;
        while let Some(line) = history.back(at) {
            if line.contains(&self.words) {
                return Some((at, line.to_owned()));
            }
            at += 1;
        }
        None
    }
}
