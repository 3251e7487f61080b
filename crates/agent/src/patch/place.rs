//! Decides where in a file a hunk belongs.
//!
//! Never guesses: a hunk has one place, or it has none. Exact places come before alike ones, over
//! the whole rest of the file.

use super::error::PatchError;
use super::matching::{Finder, Likeness};
use super::parse::{Hint, Hunk, Sign};

/// Places listed when there are too many.
pub(super) const PLACES_SHOWN_MAX: usize = 5;

pub(super) struct Spot {
    /// The first old line, counted from 0.
    pub(super) at: usize,
    /// How many of the hunk's lines count; blank ones at its end may have been mere separators.
    pub(super) lines: usize,
    /// Where the next hunk may begin.
    pub(super) cursor: usize,
}

pub(super) enum Miss {
    NoAnchor(String),
    NotFound,
    Ambiguous(Vec<usize>),
    Failed(PatchError),
}

impl From<PatchError> for Miss {
    fn from(error: PatchError) -> Self {
        Self::Failed(error)
    }
}

/// The place of a hunk at or after line `cursor`.
pub(super) fn place(finder: &mut Finder<'_, '_>, hunk: &Hunk, cursor: usize) -> Result<Spot, Miss> {
    let starts = starts(finder, hunk)?;
    if hunk.lines.iter().all(|line| line.sign == Sign::Add) {
        return addition(finder, hunk, starts.as_deref(), cursor);
    }
    let search = Search { hunk, starts: starts.as_deref(), cursor };
    let full = hunk.lines.len();
    let tail = hunk.lines.iter().rev();
    let blank = tail.take_while(|line| line.sign == Sign::Context && line.text.trim().is_empty());
    let trimmed = full - blank.count();
    for lines in [full, trimmed] {
        let old = hunk.lines.iter().take(lines).filter(|line| line.sign != Sign::Add);
        let pattern: Vec<&str> = old.map(|line| line.text.as_str()).collect();
        // Of additions and blank lines alone, the blank lines are what must be found.
        if pattern.is_empty() {
            continue;
        }
        if let Some(at) = search.run(finder, &pattern)? {
            return Ok(Spot { at, lines, cursor: at + pattern.len() });
        }
        if trimmed == full {
            break;
        }
    }
    Err(Miss::NotFound)
}

/// The lines that the hunk's anchors may mean; nothing if it has none.
///
/// Several candidates are no fault as long as they lead to one place. Anchors before the cursor
/// count too: two hunks may name the same function.
fn starts(finder: &mut Finder<'_, '_>, hunk: &Hunk) -> Result<Option<Vec<usize>>, Miss> {
    let mut starts: Option<Vec<usize>> = None;
    for anchor in &hunk.anchors {
        let lines = finder.anchored(anchor)?;
        let next = match starts {
            None => lines,
            Some(outer) => firsts(&lines, outer.iter().map(|start| start + 1)),
        };
        if next.is_empty() {
            return Err(Miss::NoAnchor(anchor.clone()));
        }
        starts = Some(next);
    }
    if starts.is_some() {
        return Ok(starts);
    }
    // A heading beside line numbers is as uncertain as they are.
    let heading = hunk.hint.as_ref().and_then(|hint| hint.heading.as_ref());
    let lines = heading.map(|heading| finder.anchored(heading)).transpose()?;
    Ok(lines.filter(|lines| !lines.is_empty()))
}

/// For each start the first place at or after it, without repetitions. All in order.
fn firsts(places: &[usize], starts: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for start in starts {
        let index = places.partition_point(|&place| place < start);
        if let Some(&place) = places.get(index)
            && found.last() != Some(&place)
        {
            found.push(place);
        }
    }
    found
}

struct Search<'h> {
    hunk: &'h Hunk,
    starts: Option<&'h [usize]>,
    cursor: usize,
}

impl Search<'_> {
    fn run(&self, finder: &mut Finder<'_, '_>, pattern: &[&str]) -> Result<Option<usize>, Miss> {
        if self.hunk.end_of_file
            && let Some(at) = self.at_end(finder, pattern)?
        {
            return Ok(Some(at));
        }
        for likeness in Likeness::ALL {
            // Without anything to choose by, two places are as bad as a thousand.
            let chooses = self.starts.is_some() || self.hunk.hint.is_some();
            let most = if chooses { usize::MAX } else { PLACES_SHOWN_MAX };
            let places = finder.places(likeness, pattern, self.cursor, most)?;
            if let Some(at) = self.choose(&places)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn at_end(
        &self,
        finder: &mut Finder<'_, '_>,
        pattern: &[&str],
    ) -> Result<Option<usize>, PatchError> {
        let Some(at) = finder.lines().len().checked_sub(pattern.len()) else {
            return Ok(None);
        };
        let is_behind_anchor = self.starts.is_none_or(|starts| starts.iter().any(|&s| s <= at));
        if at < self.cursor || !is_behind_anchor {
            return Ok(None);
        }
        for likeness in Likeness::ALL {
            if finder.fits(likeness, pattern, at)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn choose(&self, places: &[usize]) -> Result<Option<usize>, Miss> {
        let behind = self.starts.map(|starts| firsts(places, starts.iter().copied()));
        let places = match &behind {
            None => places,
            // A heading that leads nowhere was wrong; an anchor must be right.
            Some(behind) if behind.is_empty() && self.hunk.anchors.is_empty() => places,
            Some(behind) => behind,
        };
        one(places, self.hunk.hint.as_ref())
    }
}

/// Additions without context: behind the anchor, at the line number, or at the end.
fn addition(
    finder: &Finder<'_, '_>,
    hunk: &Hunk,
    starts: Option<&[usize]>,
    cursor: usize,
) -> Result<Spot, Miss> {
    let end = finder.lines().len();
    let lines = hunk.lines.len();
    if hunk.end_of_file {
        return Ok(Spot { at: end, lines, cursor });
    }
    if !hunk.anchors.is_empty() {
        let behind = starts.unwrap_or_default().iter().map(|start| start + 1);
        let places: Vec<usize> = behind.filter(|&at| at >= cursor).collect();
        let at = one(&places, hunk.hint.as_ref())?.ok_or(Miss::NotFound)?;
        return Ok(Spot { at, lines, cursor: at });
    }
    match &hunk.hint {
        Some(hint) => {
            let at = if hint.count == 0 { hint.start } else { hint.start.saturating_sub(1) };
            let at = at.clamp(cursor.min(end), end);
            Ok(Spot { at, lines, cursor: at })
        }
        // What goes to the end leaves the rest of the file to the hunks that follow.
        None => Ok(Spot { at: end, lines, cursor }),
    }
}

/// The only place, or the one nearest to the line number.
fn one(places: &[usize], hint: Option<&Hint>) -> Result<Option<usize>, Miss> {
    let [first, second, ..] = places else {
        return Ok(places.first().copied());
    };
    let ambiguous = || Miss::Ambiguous(places.iter().copied().take(PLACES_SHOWN_MAX).collect());
    let Some(hint) = hint else {
        return Err(ambiguous());
    };
    let wanted = hint.start.saturating_sub(1);
    let (mut best, mut is_tied) = (*first, false);
    for &place in std::iter::once(second).chain(places.iter().skip(2)) {
        match place.abs_diff(wanted).cmp(&best.abs_diff(wanted)) {
            std::cmp::Ordering::Less => (best, is_tied) = (place, false),
            std::cmp::Ordering::Equal => is_tied = true,
            std::cmp::Ordering::Greater => {}
        }
    }
    if is_tied { Err(ambiguous()) } else { Ok(Some(best)) }
}
