//! Styled lines, how they wrap, and how they are written for a terminal.
//!
//! A span's text went through `text::clean`, and nothing reaches the terminal but spans and the
//! escape sequences that are written here and in `screen`.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::{clean, grapheme_width, width};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub strike: bool,
    pub colour: Option<Colour>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// Whether the terminal is to be told of styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    On,
    Off,
}

impl Style {
    pub const PLAIN: Style = Style {
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        strike: false,
        colour: None,
    };
    pub const BOLD: Style = Style { bold: true, ..Style::PLAIN };
    pub const DIM: Style = Style { dim: true, ..Style::PLAIN };
    pub const RED: Style = Style::coloured(Colour::Red);
    pub const GREEN: Style = Style::coloured(Colour::Green);
    pub const YELLOW: Style = Style::coloured(Colour::Yellow);
    pub const CYAN: Style = Style::coloured(Colour::Cyan);

    pub const fn coloured(colour: Colour) -> Style {
        Style { colour: Some(colour), ..Style::PLAIN }
    }

    pub const fn bold(self) -> Style {
        Style { bold: true, ..self }
    }

    fn codes(self) -> String {
        let flags = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underline, "4"),
            (self.strike, "9"),
        ];
        let mut codes: Vec<&str> =
            flags.iter().filter(|(on, _)| *on).map(|(_, code)| *code).collect();
        codes.extend(self.colour.map(|colour| match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Blue => "34",
            Colour::Magenta => "35",
            Colour::Cyan => "36",
        }));
        codes.join(";")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
}

impl Span {
    pub fn new(text: &str, style: Style) -> Span {
        Span { text: clean(text), style }
    }
}

/// How a line that is too long goes on in the next row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wrap {
    /// At blanks, behind this many columns.
    Words { hang: usize },
    /// Not at all: the terminal does it, so that what is copied from it stays one line.
    Never,
}

/// A line of output, not yet fitted to any width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
    wrap: Wrap,
}

impl Line {
    pub fn new() -> Line {
        Line { spans: Vec::new(), wrap: Wrap::Words { hang: 0 } }
    }

    pub fn of(text: &str, style: Style) -> Line {
        Line::new().and(text, style)
    }

    pub fn and(mut self, text: &str, style: Style) -> Line {
        if !text.is_empty() {
            self.spans.push(Span::new(text, style));
        }
        self
    }

    pub fn plus(mut self, spans: impl IntoIterator<Item = Span>) -> Line {
        self.spans.extend(spans);
        self
    }

    /// Further rows begin behind so many columns.
    pub fn hang(mut self, columns: usize) -> Line {
        self.wrap = Wrap::Words { hang: columns };
        self
    }

    pub fn unwrapped(mut self) -> Line {
        self.wrap = Wrap::Never;
        self
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    #[cfg(test)]
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// As many rows as it takes; one that is never wrapped stays one.
    pub fn rows(&self, columns: usize) -> Vec<Line> {
        match self.wrap {
            Wrap::Never => vec![self.clone()],
            Wrap::Words { hang } => self.fitted(columns, hang),
        }
    }

    /// Rows that are no wider than that, whatever the line is.
    pub fn fitted_rows(&self, columns: usize) -> Vec<Line> {
        match self.wrap {
            Wrap::Never => self.fitted(columns, 0),
            Wrap::Words { hang } => self.fitted(columns, hang),
        }
    }

    fn fitted(&self, columns: usize, hang: usize) -> Vec<Line> {
        let columns = columns.max(1);
        if self.width() <= columns {
            return vec![self.clone()];
        }
        // A hanging indent that leaves no room for words is no use.
        let hang = if hang * 2 > columns || hang + 2 > columns { 0 } else { hang };
        let mut rows = Rows { columns, hang, rows: Vec::new(), row: Vec::new(), used: 0 };
        for (word, style) in self.words() {
            rows.put(&word, style);
        }
        rows.end()
    }

    /// Words with the blanks before them; styles may change inside what people call a word.
    fn words(&self) -> Vec<(Vec<&str>, Style)> {
        let mut words: Vec<(Vec<&str>, Style)> = Vec::new();
        for span in &self.spans {
            let mut word: Vec<&str> = Vec::new();
            for grapheme in span.text.graphemes(true) {
                let begins = grapheme == " " && word.last().is_some_and(|last| *last != " ");
                // Scripts without blanks break anywhere.
                let wide = grapheme_width(grapheme) > 1;
                if (begins || wide) && !word.is_empty() {
                    words.push((std::mem::take(&mut word), span.style));
                }
                word.push(grapheme);
            }
            if !word.is_empty() {
                words.push((word, span.style));
            }
        }
        words
    }

    /// The row as a terminal takes it.
    pub fn write(&self, colours: Colours) -> String {
        let mut out = String::new();
        for span in &self.spans {
            let codes = span.style.codes();
            if colours == Colours::Off || codes.is_empty() {
                out.push_str(&span.text);
            } else {
                out.push_str(&format!("\x1b[{codes}m{}\x1b[0m", span.text));
            }
        }
        out
    }
}

struct Rows {
    columns: usize,
    hang: usize,
    rows: Vec<Line>,
    row: Vec<Span>,
    used: usize,
}

impl Rows {
    fn put(&mut self, word: &[&str], style: Style) {
        let text: String = word.concat();
        if self.used + width(&text) <= self.columns {
            return self.add(&text, style);
        }
        let bare = text.trim_start_matches(' ');
        if bare.is_empty() {
            // Blanks at the end of a row are not seen.
            return;
        }
        if self.used > self.hang || self.rows.is_empty() && self.used > 0 {
            self.next_row();
        }
        for grapheme in bare.graphemes(true) {
            if self.used + grapheme_width(grapheme) > self.columns && self.used > self.hang {
                self.next_row();
            }
            self.add(grapheme, style);
        }
    }

    fn add(&mut self, text: &str, style: Style) {
        self.used += width(text);
        match self.row.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.row.push(Span { text: text.to_owned(), style }),
        }
    }

    fn next_row(&mut self) {
        let spans = std::mem::take(&mut self.row);
        self.rows.push(Line { spans, wrap: Wrap::Never });
        self.used = 0;
        if self.hang > 0 {
            self.add(&" ".repeat(self.hang), Style::PLAIN);
        }
    }

    fn end(mut self) -> Vec<Line> {
        if !self.row.is_empty() || self.rows.is_empty() {
            self.rows.push(Line { spans: self.row, wrap: Wrap::Never });
        }
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(line: &Line, columns: usize) -> Vec<String> {
        line.rows(columns).iter().map(Line::plain).collect()
    }

    #[test]
    fn lines_wrap_at_blanks() {
        let line = Line::of("one two three four", Style::PLAIN);
        assert_eq!(texts(&line, 9), ["one two", "three", "four"]);
        assert_eq!(texts(&line, 80), ["one two three four"]);
    }

    #[test]
    fn what_has_no_blanks_is_cut() {
        let line = Line::of("abcdefgh", Style::PLAIN);
        assert_eq!(texts(&line, 3), ["abc", "def", "gh"]);
        let line = Line::of("語語語", Style::PLAIN);
        assert_eq!(texts(&line, 5), ["語語", "語"]);
    }

    #[test]
    fn further_rows_hang() {
        let line = Line::of("- one two three", Style::PLAIN).hang(2);
        assert_eq!(texts(&line, 9), ["- one two", "  three"]);
    }

    #[test]
    fn styles_are_written_only_with_colours() {
        let line = Line::of("a", Style::RED.bold()).and("b", Style::PLAIN);
        assert_eq!(line.write(Colours::On), "\x1b[1;31ma\x1b[0mb");
        assert_eq!(line.write(Colours::Off), "ab");
    }

    #[test]
    fn no_escape_comes_from_a_text() {
        let line = Line::of("\x1b]0;title\x07", Style::PLAIN);
        assert_eq!(line.write(Colours::On), "␛]0;title␇");
    }

    proptest! {
        #[test]
        fn rows_fit_and_lose_nothing(
            text in "[a-c語é ]{0,60}",
            columns in 2usize..20,
            hang in 0usize..6,
        ) {
            let line = Line::of(&text, Style::PLAIN).hang(hang);
            let rows = line.rows(columns);
            let bare = |text: &str| text.replace(' ', "");
            let all: String = rows.iter().map(|row| bare(&row.plain())).collect();
            prop_assert_eq!(all, bare(&text));
            for row in rows {
                prop_assert!(row.width() <= columns, "{:?}", row.plain());
            }
        }
    }
}
