//! Signs that look like those a shell reads, or stand so close to them that nobody tells them
//! apart.
//!
//! Whole blocks where most of a block does: in a command it is better to see one code too many.

/// Whether a sign could be taken for one of ASCII. Letters are judged by their words instead,
/// unless they are letters in name only.
pub(super) fn is_sign(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    is_near_latin(c) || is_of_a_script(c) || is_of_a_block(c)
}

/// Dots, bars, dashes, quotation marks and accents that stand alone.
fn is_near_latin(c: char) -> bool {
    matches!(c,
        '\u{a6}' | '\u{a8}' | '\u{ab}' | '\u{ac}' | '\u{af}' | '\u{b2}'..='\u{b4}'
        | '\u{b7}'..='\u{be}' | '\u{d7}' | '\u{aa}'
        // Clicks, drawn as bars and an exclamation mark.
        | '\u{1c0}'..='\u{1c3}'
        // Modifier letters: quotation marks, colons, small raised letters.
        | '\u{2b0}'..='\u{2ff}'
        // The Greek question mark is a semicolon.
        | '\u{374}' | '\u{375}' | '\u{37a}' | '\u{37e}' | '\u{384}' | '\u{385}' | '\u{387}'
        | '\u{1fbd}' | '\u{1fbf}'..='\u{1fc1}' | '\u{1fcd}'..='\u{1fcf}'
        | '\u{1fdd}'..='\u{1fdf}' | '\u{1fed}'..='\u{1fef}' | '\u{1ffd}' | '\u{1ffe}'
        | '\u{2cf9}'..='\u{2cff}' | '\u{2cba}' | '\u{2cbb}')
}

/// Of scripts whose other signs are honest.
fn is_of_a_script(c: char) -> bool {
    matches!(c,
        // Armenian, Hebrew, Arabic, Syriac, N'Ko.
        '\u{559}'..='\u{55f}' | '\u{589}' | '\u{58a}' | '\u{5be}' | '\u{5c0}' | '\u{5c3}'
        | '\u{5c6}' | '\u{5f3}' | '\u{5f4}' | '\u{609}' | '\u{60a}' | '\u{60c}' | '\u{60d}'
        | '\u{61b}' | '\u{61f}' | '\u{66a}'..='\u{66d}' | '\u{6d4}' | '\u{700}'..='\u{70d}'
        | '\u{7f4}' | '\u{7f5}' | '\u{7f8}'..='\u{7fa}'
        // Indian, Georgian, Ethiopian, syllabic, Ogham, Runic, Mongolian.
        | '\u{964}' | '\u{965}' | '\u{970}' | '\u{10fb}' | '\u{1361}'..='\u{1368}'
        | '\u{1400}' | '\u{1427}' | '\u{1428}' | '\u{1433}' | '\u{1438}' | '\u{144a}'
        | '\u{166d}' | '\u{166e}' | '\u{1680}'..='\u{169c}' | '\u{16b2}' | '\u{16cc}'
        | '\u{16eb}'..='\u{16ed}' | '\u{1800}'..='\u{180a}' | '\u{2d70}'
        // Strokes and marks of East Asia that draw a line and say nothing.
        | '\u{2f00}'..='\u{2fdf}' | '\u{2ff0}'..='\u{2fff}' | '\u{31c0}'..='\u{31ef}'
        | '\u{3003}' | '\u{3008}'..='\u{300b}' | '\u{3014}'..='\u{301f}'
        | '\u{3030}'..='\u{3035}' | '\u{30a0}' | '\u{4e28}' | '\u{4e36}' | '\u{4e3f}'
        | '\u{a4f8}'..='\u{a4ff}' | '\u{a60d}'..='\u{a60f}' | '\u{a6f3}'..='\u{a6f7}'
        | '\u{a788}'..='\u{a78c}' | '\u{a830}'..='\u{a839}' | '\u{a92e}'
        | '\u{fb1d}'..='\u{fb29}' | '\u{fd3e}' | '\u{fd3f}' | '\u{10a50}'..='\u{10a58}'
        | '\u{10ead}' | '\u{10100}'..='\u{10102}')
}

/// Blocks of punctuation, operators, lines, and letters and digits in another dress.
fn is_of_a_block(c: char) -> bool {
    matches!(c,
        // Punctuation, raised and lowered, letterlike, numbers in letters.
        '\u{2000}'..='\u{209f}' | '\u{20a8}' | '\u{2100}'..='\u{218f}'
        // Operators; brackets, bars and corners among the technical signs; enclosed letters.
        | '\u{2200}'..='\u{22ff}' | '\u{2303}' | '\u{2304}' | '\u{2308}'..='\u{230b}'
        | '\u{2318}' | '\u{231c}'..='\u{231f}' | '\u{2329}' | '\u{232a}'
        | '\u{2336}'..='\u{237a}' | '\u{2395}' | '\u{239b}'..='\u{23bd}' | '\u{23d0}'
        | '\u{23dc}'..='\u{23e1}' | '\u{23fd}' | '\u{2460}'..='\u{24ff}'
        // Lines drawn for tables, and the dingbats among punctuation.
        | '\u{2500}'..='\u{257f}' | '\u{2731}' | '\u{2758}'..='\u{2775}'
        | '\u{2795}'..='\u{2797}' | '\u{27c0}'..='\u{27ef}' | '\u{2980}'..='\u{2aff}'
        | '\u{2e00}'..='\u{2e7f}'
        // Squares of letters, vertical, small and full-width forms, ligatures.
        | '\u{3200}'..='\u{33ff}' | '\u{fb00}'..='\u{fb17}' | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe6f}' | '\u{ff01}'..='\u{ff65}' | '\u{ffe0}'..='\u{ffef}'
        // Mathematical letters and digits, notes, enclosed letters and flags, ornaments.
        | '\u{1d100}'..='\u{1d1ff}' | '\u{1d400}'..='\u{1d7ff}' | '\u{1ee00}'..='\u{1eeff}'
        | '\u{1f100}'..='\u{1f1ff}' | '\u{1f670}'..='\u{1f67f}' | '\u{1fbf0}'..='\u{1fbf9}')
}
