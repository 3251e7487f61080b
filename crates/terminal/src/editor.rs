//! The line that is being written: its text, the cursor, what was cut, and earlier lines.
//!
//! Pure: keys go in, the text and how it is laid out come out.

pub mod history;
mod layout;
mod search;

use unicode_segmentation::UnicodeSegmentation;

pub use self::layout::Layout;
use self::search::Search;
use crate::keys::Key;
use history::History;

/// A longer text is not taken; the server has a bound of its own.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// In bytes, between graphemes.
    cursor: usize,
    cut: String,
    /// How far back in the history it stands, and what was written before.
    back: Option<(usize, String)>,
    search: Option<Search>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The key was used, or meant nothing.
    Done,
    Submit(String),
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.search.is_none()
    }

    pub fn set(&mut self, text: &str) {
        self.text = text.to_owned();
        self.cursor = self.text.len();
        self.back = None;
        self.search = None;
    }

    pub fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.set("");
        text
    }

    pub fn layout(&self, lead: &str, columns: usize) -> Layout {
        match &self.search {
            Some(search) => {
                let lead = format!("search ({}) ", search.words);
                Layout::of(&self.text, self.cursor, &lead, columns)
            }
            None => Layout::of(&self.text, self.cursor, lead, columns),
        }
    }

    pub fn key(&mut self, key: Key, history: &History) -> Outcome {
        if self.search.is_some() && self.search_key(&key, history) {
            return Outcome::Done;
        }
        match key {
            Key::Enter => return self.enter(),
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(&text),
            Key::AltEnter | Key::Ctrl('j') => self.insert("\n"),
            Key::Backspace => self.delete(self.left(), self.cursor),
            Key::Delete | Key::Ctrl('d') => self.delete(self.cursor, self.right()),
            Key::Left | Key::Ctrl('b') => self.cursor = self.left(),
            Key::Right | Key::Ctrl('f') => self.cursor = self.right(),
            Key::WordLeft => self.cursor = self.word_left(),
            Key::WordRight => self.cursor = self.word_right(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(),
            Key::Up | Key::Ctrl('p') => self.up(history),
            Key::Down | Key::Ctrl('n') => self.down(history),
            Key::Ctrl('k') => self.kill(self.cursor, self.kill_end()),
            Key::Ctrl('u') => self.kill(self.line_start(), self.cursor),
            Key::Ctrl('w') | Key::DeleteWord => self.kill(self.word_left(), self.cursor),
            Key::Alt('d') => self.kill(self.cursor, self.word_right()),
            Key::Ctrl('y') => self.insert(&self.cut.clone()),
            Key::Ctrl('r') => self.search = Some(Search::begin(&self.text)),
            Key::Tab | Key::Esc | Key::Ctrl(_) | Key::Alt(_) => {}
        }
        Outcome::Done
    }

    /// A backslash at the end goes on in the next line.
    fn enter(&mut self) -> Outcome {
        if self.cursor == self.text.len() && self.text.ends_with('\\') {
            self.text.pop();
            self.cursor = self.text.len();
            self.insert("\n");
            return Outcome::Done;
        }
        if self.text.trim().is_empty() {
            self.take();
            return Outcome::Done;
        }
        Outcome::Submit(self.take())
    }

    pub fn insert(&mut self, text: &str) {
        if self.text.len() + text.len() > TEXT_BYTES_MAX {
            return;
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // What was put in may have joined its neighbours.
        if !self.is_boundary(self.cursor) {
            self.cursor = self.right();
        }
    }

    fn is_boundary(&self, at: usize) -> bool {
        at == self.text.len() || self.text.grapheme_indices(true).any(|(start, _)| start == at)
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn kill(&mut self, from: usize, to: usize) {
        if from < to {
            self.cut = self.text[from..to].to_owned();
            self.delete(from, to);
        }
    }

    fn left(&self) -> usize {
        let before = self.text[..self.cursor].graphemes(true).next_back();
        self.cursor - before.map_or(0, str::len)
    }

    fn right(&self) -> usize {
        let after = self.text[self.cursor..].graphemes(true).next();
        self.cursor + after.map_or(0, str::len)
    }

    fn word_left(&self) -> usize {
        let before = &self.text[..self.cursor];
        let bare = before.trim_end_matches(|c: char| !c.is_alphanumeric());
        bare.trim_end_matches(char::is_alphanumeric).len()
    }

    fn word_right(&self) -> usize {
        let after = &self.text[self.cursor..];
        let bare = after.trim_start_matches(|c: char| !c.is_alphanumeric());
        let rest = bare.trim_start_matches(char::is_alphanumeric);
        self.text.len() - rest.len()
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// At the end of a line, its break.
    fn kill_end(&self) -> usize {
        let end = self.line_end();
        if end == self.cursor { self.right() } else { end }
    }

    fn up(&mut self, history: &History) {
        let start = self.line_start();
        if start > 0 {
            return self.move_to_line(start - 1);
        }
        let at = self.back.as_ref().map_or(0, |(at, _)| at + 1);
        let Some(earlier) = history.back(at) else { return };
        let written = match self.back.take() {
            Some((_, written)) => written,
            None => self.text.clone(),
        };
        self.set(earlier);
        self.back = Some((at, written));
    }

    fn down(&mut self, history: &History) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.column();
            self.cursor = end + 1;
            return self.move_to_column(column);
        }
        match self.back.take() {
            None => {}
            Some((0, written)) => self.set(&written),
            Some((at, written)) => {
                self.set(history.back(at - 1).unwrap_or_default());
                self.back = Some((at - 1, written));
            }
        }
    }

    fn column(&self) -> usize {
        self.text[self.line_start()..self.cursor].graphemes(true).count()
    }

    /// To the same column of the line that ends there.
    fn move_to_line(&mut self, end: usize) {
        let column = self.column();
        self.cursor = end;
        self.cursor = self.line_start();
        self.move_to_column(column);
    }

    fn move_to_column(&mut self, column: usize) {
        for _ in 0..column {
            if self.cursor == self.line_end() {
                return;
            }
            self.cursor = self.right();
        }
    }

    /// False when the search is over and the key is still to be used.
    fn search_key(&mut self, key: &Key, history: &History) -> bool {
        let Some(search) = &mut self.search else { return false };
        match key {
            Key::Char(c) => search.words.push(*c),
            Key::Backspace => drop(search.words.pop()),
            Key::Ctrl('r') => search.at += 1,
            Key::Esc | Key::Ctrl('g') => {
                let written = search.written.clone();
                self.set(&written);
                return true;
            }
            _ => {
                self.search = None;
                return matches!(key, Key::Enter);
            }
        }
        if let Some((at, found)) = search.find(history) {
            search.at = at;
            self.text = found;
            self.cursor = self.text.len();
        }
        true
    }

    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }
}

#[cfg(test)]
mod tests;
