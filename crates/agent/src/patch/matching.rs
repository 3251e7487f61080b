//! Finds lines in a file, exactly or by likeness.
//!
//! Every line becomes a number, equal numbers for equal lines, so that a search costs one
//! comparison a line however alike the lines are; and all searches share one [`Budget`].

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::MATCH_STEPS_MAX;
use super::error::PatchError;
use super::text::Line;

/// Reading so many bytes costs about as much as comparing two numbered lines.
const BYTES_PER_STEP: usize = 4;

/// When two lines count as the same, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    Exact,
    TrailingBlanks,
    OuterBlanks,
    LookAlikes,
}

impl Likeness {
    pub(super) const ALL: [Self; 4] =
        [Self::Exact, Self::TrailingBlanks, Self::OuterBlanks, Self::LookAlikes];

    fn index(self) -> usize {
        match self {
            Self::Exact => 0,
            Self::TrailingBlanks => 1,
            Self::OuterBlanks => 2,
            Self::LookAlikes => 3,
        }
    }

    /// Lines with the same key are the same.
    fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        let text = str::from_utf8(line);
        match (self, text) {
            (Self::Exact, _) => Cow::Borrowed(line),
            (Self::TrailingBlanks, Ok(text)) => Cow::Borrowed(text.trim_end().as_bytes()),
            (Self::TrailingBlanks, Err(_)) => Cow::Borrowed(line.trim_ascii_end()),
            (Self::OuterBlanks, Ok(text)) => Cow::Borrowed(text.trim().as_bytes()),
            (Self::LookAlikes, Ok(text)) => Cow::Owned(folded(text.trim()).into_bytes()),
            (Self::OuterBlanks | Self::LookAlikes, Err(_)) => Cow::Borrowed(line.trim_ascii()),
        }
    }
}

/// Dashes, quotes and blanks that look alike become one of their kind.
pub(super) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => {
                folded.push('-');
            }
            '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{ff07}' => folded.push('\''),
            '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => folded.push('"'),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
                folded.push(' ');
            }
            '\u{2026}' => folded.push_str("..."),
            other => folded.push(other),
        }
    }
    folded
}

/// How many more lines may be compared for this patch.
pub(super) struct Budget {
    steps: usize,
}

impl Budget {
    pub(super) fn new(steps: usize) -> Self {
        Self { steps }
    }

    fn spend(&mut self, steps: usize) -> Result<(), PatchError> {
        self.steps = self.steps.checked_sub(steps).ok_or_else(|| PatchError::TooLarge {
            what: "the lines to compare to place all hunks".to_owned(),
            found: MATCH_STEPS_MAX.saturating_add(steps),
            limit: MATCH_STEPS_MAX,
        })?;
        Ok(())
    }
}

/// The lines of a file as numbers, for one likeness.
struct Table<'a> {
    ids: Vec<u32>,
    known: HashMap<Cow<'a, [u8]>, u32>,
}

pub(super) struct Finder<'a, 'b> {
    lines: &'a [Line<'a>],
    bytes: usize,
    tables: [Option<Table<'a>>; 4],
    budget: &'b mut Budget,
}

impl<'a, 'b> Finder<'a, 'b> {
    pub(super) fn new(lines: &'a [Line<'a>], budget: &'b mut Budget) -> Self {
        let bytes = lines.iter().map(|line| line.text.len()).sum();
        Self { lines, bytes, tables: [const { None }; 4], budget }
    }

    pub(super) fn lines(&self) -> &'a [Line<'a>] {
        self.lines
    }

    /// Where the pattern occurs at or after line `from`, in order; at most `most` places.
    pub(super) fn places(
        &mut self,
        likeness: Likeness,
        pattern: &[&str],
        from: usize,
        most: usize,
    ) -> Result<Vec<usize>, PatchError> {
        self.budget.spend(self.lines.len().saturating_sub(from) + pattern.len())?;
        let Some(pattern) = self.numbered(likeness, pattern)? else {
            return Ok(Vec::new());
        };
        let ids = self.table(likeness)?.ids.get(from..).unwrap_or_default();
        let mut found = Vec::new();
        for at in Occurrences::new(ids, &pattern).take(most) {
            found.push(from + at);
        }
        Ok(found)
    }

    /// Whether the pattern is exactly at line `at`.
    pub(super) fn fits(
        &mut self,
        likeness: Likeness,
        pattern: &[&str],
        at: usize,
    ) -> Result<bool, PatchError> {
        self.budget.spend(pattern.len())?;
        let Some(pattern) = self.numbered(likeness, pattern)? else {
            return Ok(false);
        };
        let ids = self.table(likeness)?.ids.get(at..at + pattern.len());
        Ok(ids == Some(pattern.as_slice()))
    }

    /// Every line that an anchor may mean: those equal to it by the strictest likeness that has
    /// any, else those that begin with it, else those that hold it.
    pub(super) fn anchored(&mut self, anchor: &str) -> Result<Vec<usize>, PatchError> {
        for likeness in Likeness::ALL {
            let equal = self.places(likeness, &[anchor], 0, usize::MAX)?;
            if !equal.is_empty() {
                return Ok(equal);
            }
        }
        self.budget.spend(self.lines.len() + self.bytes / BYTES_PER_STEP)?;
        let anchor = folded(anchor.trim());
        let table = self.table(Likeness::LookAlikes)?;
        let part = |test: fn(&str, &str) -> bool| -> Vec<usize> {
            // Each different line is looked at once, however often it occurs.
            let holds =
                |key: &Cow<'_, [u8]>| str::from_utf8(key).is_ok_and(|text| test(text, &anchor));
            let known = table.known.iter();
            let held: HashSet<u32> =
                known.filter(|(key, _)| holds(key)).map(|(_, &id)| id).collect();
            let ids = table.ids.iter().enumerate();
            ids.filter(|(_, id)| held.contains(id)).map(|(index, _)| index).collect()
        };
        let opening = part(|text, anchor| text.starts_with(anchor));
        Ok(if opening.is_empty() { part(|text, anchor| text.contains(anchor)) } else { opening })
    }

    /// The place that shares most lines with the beginning of the pattern, and how many.
    pub(super) fn closest(&mut self, pattern: &[&str]) -> Result<(usize, usize), PatchError> {
        self.budget.spend(self.lines.len().saturating_mul(pattern.len()))?;
        let table = self.table(Likeness::LookAlikes)?;
        let number =
            |line: &&str| table.known.get(&Likeness::LookAlikes.key(line.as_bytes())).copied();
        let pattern: Vec<Option<u32>> = pattern.iter().map(number).collect();
        let mut best = (0, 0);
        for at in 0..table.ids.len() {
            let here = table.ids.iter().skip(at).zip(&pattern);
            let shared = here.take_while(|(id, wanted)| Some(**id) == **wanted).count();
            if shared > best.1 {
                best = (at, shared);
            }
        }
        Ok(best)
    }

    /// The pattern as numbers; nothing if one of its lines is nowhere in the file.
    fn numbered(
        &mut self,
        likeness: Likeness,
        pattern: &[&str],
    ) -> Result<Option<Vec<u32>>, PatchError> {
        let known = &self.table(likeness)?.known;
        let number = |line: &&str| known.get(&likeness.key(line.as_bytes())).copied();
        Ok(pattern.iter().map(number).collect())
    }

    fn table(&mut self, likeness: Likeness) -> Result<&Table<'a>, PatchError> {
        let lines = self.lines;
        let slot = &mut self.tables[likeness.index()];
        if slot.is_none() {
            self.budget.spend(lines.len() + self.bytes / BYTES_PER_STEP)?;
        }
        Ok(slot.get_or_insert_with(|| {
            let mut table = Table { ids: Vec::with_capacity(lines.len()), known: HashMap::new() };
            for line in lines {
                let next = u32::try_from(table.known.len()).unwrap_or(u32::MAX);
                table.ids.push(*table.known.entry(likeness.key(line.text)).or_insert(next));
            }
            table
        }))
    }
}

/// All places of a pattern in a text, overlapping ones too, in time linear in both
/// (Knuth, Morris and Pratt).
struct Occurrences<'t> {
    text: &'t [u32],
    pattern: &'t [u32],
    /// For each length matched, the length to go on with after a mismatch.
    fallback: Vec<usize>,
    at: usize,
    matched: usize,
}

impl<'t> Occurrences<'t> {
    fn new(text: &'t [u32], pattern: &'t [u32]) -> Self {
        let mut fallback = vec![0; pattern.len() + 1];
        let mut length = 0;
        for index in 1..pattern.len() {
            while length > 0 && pattern[index] != pattern[length] {
                length = fallback[length];
            }
            if pattern[index] == pattern[length] {
                length += 1;
            }
            fallback[index + 1] = length;
        }
        Self { text, pattern, fallback, at: 0, matched: 0 }
    }
}

impl Iterator for Occurrences<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.pattern.is_empty() {
            return None;
        }
        while let Some(&id) = self.text.get(self.at) {
            self.at += 1;
            while self.matched > 0 && self.pattern.get(self.matched) != Some(&id) {
                self.matched = self.fallback[self.matched];
            }
            if self.pattern.get(self.matched) == Some(&id) {
                self.matched += 1;
            }
            if self.matched == self.pattern.len() {
                return Some(self.at - self.matched);
            }
        }
        None
    }
}
