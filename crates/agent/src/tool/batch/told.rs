//! What a model is told of a batch: every part by its number, together within a bound.

use polyloop_session::Text;
use polyloop_session::item::{End, FileChange};
use polyloop_session::todos::Todo;

use crate::tool::files::TEXT_BYTES_MAX;

/// For what is said around the parts' texts.
const NOTES_BYTES: usize = 4 * 1024;

/// Stands before the text of a part that failed.
pub(super) const ERROR: &str = "error: ";

/// What came of one part.
pub(super) struct Told {
    pub tool: &'static str,
    pub end: End,
    /// As its tool would tell it alone.
    pub text: String,
    pub files: Vec<FileChange>,
    /// What is open of the todos, where it was about them.
    pub todos: Option<Text>,
    /// The whole list, where it wrote it.
    pub todo_list: Option<Vec<Todo>>,
}

impl Told {
    pub(super) fn failed(tool: &'static str, why: String) -> Told {
        Told { tool, end: End::Failed, text: why, files: Vec::new(), todos: None, todo_list: None }
    }

    pub(super) fn is_well(&self) -> bool {
        self.end == End::Whole
    }
}

/// How a part's text begins.
pub(super) fn heading(number: usize, told: &'static str) -> String {
    format!("[{number}] {told}: ")
}

pub(super) fn text(parts: &[Told]) -> String {
    let lengths: Vec<usize> = parts.iter().map(|part| part.text.len()).collect();
    let share = share(&lengths, TEXT_BYTES_MAX - NOTES_BYTES);
    let mut text = String::new();
    for (number, part) in (1..).zip(parts) {
        text.push_str(&heading(number, part.tool));
        if !part.is_well() {
            text.push_str(ERROR);
        }
        text.push_str(&cut(&part.text, share, part.tool));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if let Some(note) = note(parts) {
        text.push_str(&note);
    }
    text
}

/// Which parts failed, if any did.
pub(super) fn note(parts: &[Told]) -> Option<String> {
    let failed = (1..).zip(parts).filter(|(_, part)| !part.is_well());
    let failed: Vec<String> = failed.map(|(number, _)| format!("[{number}]")).collect();
    let (count, all) = (failed.len(), parts.len());
    (count > 0).then(|| format!("({count} of {all} calls failed: {})\n", failed.join(" ")))
}

/// The longest a part's text may be, so that short ones leave their room to long ones.
fn share(lengths: &[usize], room: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let (mut room, mut left) = (room, sorted.len());
    for length in sorted {
        if length > room / left {
            return room / left;
        }
        room -= length;
        left -= 1;
    }
    usize::MAX
}

fn cut(text: &str, share: usize, tool: &str) -> String {
    if text.len() <= share {
        return text.to_owned();
    }
    let half = share.saturating_sub(100) / 2;
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    let (begin, end) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    let bytes = tail - head;
    format!("{begin}\n[{bytes} bytes are left out here; call {tool} alone to see them]\n{end}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(text: &str, end: End) -> Told {
        Told {
            tool: "read",
            end,
            text: text.to_owned(),
            files: Vec::new(),
            todos: None,
            todo_list: None,
        }
    }

    #[test]
    fn every_part_is_told_by_its_number() {
        let parts = [told("one\n", End::Whole), told("two", End::Failed), told("", End::Whole)];
        let want = "[1] read: one\n[2] read: error: two\n[3] read: \n(1 of 3 calls failed: [2])\n";
        assert_eq!(text(&parts), want);
    }

    #[test]
    fn short_texts_leave_their_room_to_long_ones() {
        assert_eq!(share(&[10, 10, 10], 30), usize::MAX);
        assert_eq!(share(&[10, 11, 10], 30), 10);
        assert_eq!(share(&[1, 1, 1_000], 30), 28);
        assert_eq!(share(&[100, 1, 1_000], 31), 15);
        let long = "é".repeat(50_000);
        let shown = text(&[told("short", End::Whole), told(&long, End::Whole)]);
        assert!(shown.len() > TEXT_BYTES_MAX - NOTES_BYTES - 200, "{}", shown.len());
        assert!(shown.contains(" bytes are left out here; call read alone to see them]"));
    }

    proptest! {
        #[test]
        fn all_together_is_within_the_bound(
            parts in prop::collection::vec((0..200_000_usize, any::<bool>()), 1..=25)
        ) {
            let told = |(length, well): &(usize, bool)| {
                told(&"é".repeat(length / 2), if *well { End::Whole } else { End::Failed })
            };
            let parts: Vec<Told> = parts.iter().map(told).collect();
            prop_assert!(text(&parts).len() <= TEXT_BYTES_MAX);
        }
    }
}
