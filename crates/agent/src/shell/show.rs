//! Makes visible what a command holds but a screen would not show.

/// Whether a character hides, turns around or imitates something on the screen, so that what a
/// person reads is not what runs. Newline and tab are what they look like.
pub fn is_deceptive(c: char) -> bool {
    if c == '\n' || c == '\t' {
        return false;
    }
    c.is_control() || is_invisible(c) || (c.is_whitespace() && c != ' ')
}

/// Drawn as nothing, or changes how its neighbours are drawn.
fn is_invisible(c: char) -> bool {
    matches!(c,
        // Soft hyphen, grapheme joiner, fillers that are drawn empty.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
        | '\u{ffa0}' | '\u{2800}'
        // Direction: what follows, or what is enclosed, is drawn the other way round.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Zero width, and invisible operators.
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Variation selectors and tags: whole texts can be hidden in them.
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}'
        | '\u{1d173}'..='\u{1d17a}')
}

/// The text as a person should see it: what [`is_deceptive`] finds is written as its code.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The same, in one line that is not longer than a sentence can carry.
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
