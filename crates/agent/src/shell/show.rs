//! Pieces of a command in a sentence about it.

use polyloop_session::shown::visible;

/// What is invisible is made visible, in one line that is not longer than a sentence can carry.
pub(super) fn brief(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let line = text.replace('\n', "\\n").replace('\t', "\\t");
    let mut chars = line.chars();
    let mut start = visible(&chars.by_ref().take(CHARS_MAX).collect::<String>());
    if chars.next().is_some() {
        start.push('…');
    }
    start
}
