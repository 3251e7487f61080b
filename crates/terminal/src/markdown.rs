//! Markdown as it streams in, made into styled lines.
//!
//! Works line by line: a line that is whole is never changed again, so that it can go up into the
//! terminal's own history; the open one is shown as it stands. What is no Markdown is shown as it
//! came.

mod inline;

use crate::style::{Colour, Line, Style};
use crate::text::lines;

/// A longer line is given out in pieces, so that it is not drawn again for every word.
pub const OPEN_LINE_BYTES_MAX: usize = 8 * 1024;
const RULE: &str = "────────────────";
const HEADING: Style = Style::coloured(Colour::Magenta).bold();

#[derive(Debug, Default)]
pub struct Markdown {
    open: String,
    fence: Option<Fence>,
}

#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    diff: bool,
}

impl Markdown {
    /// Takes more text; gives the lines that are whole now.
    pub fn push(&mut self, text: &str) -> Vec<Line> {
        let mut made = Vec::new();
        // What stands open has no line break: only the new text is looked through, once.
        let mut rest = text;
        while let Some((line, behind)) = rest.split_once('\n') {
            let mut whole = std::mem::take(&mut self.open);
            whole.push_str(line);
            self.line(&whole, &mut made);
            rest = behind;
        }
        self.open.push_str(rest);
        if self.open.len() > OPEN_LINE_BYTES_MAX {
            let rest = self.open.split_off(cut(&self.open));
            let line = std::mem::replace(&mut self.open, rest);
            self.line(&line, &mut made);
        }
        made
    }

    /// The line that is still open, as it looks so far.
    pub fn open(&self) -> Option<Line> {
        if self.open.is_empty() {
            return None;
        }
        let mut made = Vec::new();
        let fence = self.fence.as_ref();
        let closes = fence.is_some_and(|fence| fence.ends(&self.open));
        match fence {
            Some(fence) if !closes => made.push(fence.code(&self.open)),
            _ if closes || opening(&self.open).is_some() => return None,
            _ => block(&self.open, &mut made),
        }
        made.pop()
    }

    /// No more comes.
    pub fn end(&mut self) -> Vec<Line> {
        let mut made = Vec::new();
        let line = std::mem::take(&mut self.open);
        if !line.is_empty() {
            self.line(&line, &mut made);
        }
        if self.fence.take().is_some() {
            made.push(Line::of("  ╰─", Style::DIM));
        }
        made
    }

    fn line(&mut self, line: &str, made: &mut Vec<Line>) {
        for line in lines(line) {
            match &self.fence {
                Some(fence) if fence.ends(line) => {
                    self.fence = None;
                    made.push(Line::of("  ╰─", Style::DIM));
                }
                Some(fence) => made.push(fence.code(line)),
                None => match opening(line) {
                    Some((fence, name)) => {
                        made.push(Line::of(&format!("  ╭─ {name}"), Style::DIM));
                        self.fence = Some(fence);
                    }
                    None => block(line, made),
                },
            }
        }
    }
}

/// Where a long line may be given out: behind its last blank, or between characters.
pub fn cut(line: &str) -> usize {
    match line.rfind(' ') {
        Some(at) => at + 1,
        None => line.len(),
    }
}

impl Fence {
    fn ends(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }

    fn code(&self, line: &str) -> Line {
        let style = if self.diff { diff_style(line) } else { Style::PLAIN };
        Line::of("  │ ", Style::DIM).and(line, style).unwrapped()
    }
}

/// The style of a line of a diff.
pub fn diff_style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => Style::GREEN,
        Some('-') => Style::RED,
        Some('@') => Style::CYAN,
        Some('*') => Style::BOLD,
        _ => Style::PLAIN,
    }
}

fn opening(line: &str) -> Option<(Fence, &str)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let name = line[length..].trim();
    if length < 3 || name.contains('`') {
        return None;
    }
    let diff = matches!(name, "diff" | "patch");
    Some((Fence { mark, length, diff }, name))
}

/// A line outside of code.
fn block(line: &str, made: &mut Vec<Line>) {
    let inner = line.trim_start();
    let indent = line.len() - inner.len();
    let inner = inner.trim_end();
    if inner.is_empty() {
        made.push(Line::new());
    } else if indent >= 4 && item(inner).is_none() {
        made.push(Line::of(line, Style::CYAN).unwrapped());
    } else if let Some(title) = heading(inner) {
        made.push(Line::new().plus(inline::spans(title, HEADING)));
    } else if is_rule(inner) {
        made.push(Line::of(RULE, Style::DIM));
    } else if inner.starts_with('|') {
        made.push(Line::of(line, Style::PLAIN).unwrapped());
    } else if let Some(quoted) = inner.strip_prefix('>') {
        let style = Style { italic: true, ..Style::PLAIN };
        let spans = inline::spans(quoted.trim_start(), style);
        made.push(Line::of("▎ ", Style::DIM).plus(spans).hang(2));
    } else if let Some((mark, text)) = item(inner) {
        let lead = format!("{}{mark} ", " ".repeat(indent));
        let hang = crate::text::width(&lead);
        let spans = inline::spans(text, Style::PLAIN);
        made.push(Line::of(&lead, Style::CYAN).plus(spans).hang(hang));
    } else {
        let lead = " ".repeat(indent);
        made.push(
            Line::of(&lead, Style::PLAIN).plus(inline::spans(inner, Style::PLAIN)).hang(indent),
        );
    }
}

fn heading(line: &str) -> Option<&str> {
    let marks = line.chars().take_while(|c| *c == '#').count();
    let rest = line[marks..].strip_prefix(' ')?;
    (1..=6).contains(&marks).then(|| rest.trim().trim_end_matches('#').trim_end())
}

fn is_rule(line: &str) -> bool {
    let bare: Vec<char> = line.chars().filter(|c| *c != ' ').collect();
    let first = bare.first().copied().unwrap_or(' ');
    bare.len() >= 3 && matches!(first, '-' | '*' | '_') && bare.iter().all(|c| *c == first)
}

/// The mark of a list's item as it is shown, and the item.
fn item(line: &str) -> Option<(String, &str)> {
    let rest = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    if let Some(rest) = rest {
        return Some(match rest.get(..4) {
            Some("[ ] ") => ("☐".to_owned(), &rest[4..]),
            Some("[x] " | "[X] ") => ("☑".to_owned(), &rest[4..]),
            _ => ("•".to_owned(), rest),
        });
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let mark = line.get(digits..digits + 2)?;
    let numbered = (1..=9).contains(&digits) && matches!(mark, ". " | ") ");
    numbered.then(|| (line[..=digits].to_owned(), line[digits + 2..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Colours;
    use proptest::prelude::*;

    fn whole(text: &str) -> Vec<Line> {
        let mut markdown = Markdown::default();
        let mut lines = markdown.push(text);
        lines.extend(markdown.end());
        lines
    }

    fn shown(text: &str) -> Vec<String> {
        whole(text).iter().map(Line::plain).collect()
    }

    #[test]
    fn blocks_have_their_looks() {
        let text =
            "# Title\n\ntext\n- one\n  - two\n1. first\n- [x] done\n> said\n---\n| a | b |\n";
        let want = [
            "Title",
            "",
            "text",
            "• one",
            "  • two",
            "1. first",
            "☑ done",
            "▎ said",
            RULE,
            "| a | b |",
        ];
        assert_eq!(shown(text), want);
    }

    #[test]
    fn code_is_framed_and_left_alone() {
        let text = "```rust\nlet a = \"**x**\"; // # no\n\n```\n**b**";
        let want = ["  ╭─ rust", "  │ let a = \"**x**\"; // # no", "  │ ", "  ╰─", "b"];
        assert_eq!(shown(text), want);
        assert_eq!(shown("````\n```\n````"), ["  ╭─ ", "  │ ```", "  ╰─"]);
        assert_eq!(shown("```\nnever closed"), ["  ╭─ ", "  │ never closed", "  ╰─"]);
    }

    #[test]
    fn diffs_are_coloured() {
        let lines = whole("```diff\n+new\n-old\n```");
        assert!(lines[1].write(Colours::On).contains("\x1b[32m+new"), "{lines:?}");
        assert!(lines[2].write(Colours::On).contains("\x1b[31m-old"), "{lines:?}");
    }

    #[test]
    fn the_open_line_is_shown_as_it_stands() {
        let mut markdown = Markdown::default();
        assert!(markdown.push("some **bo").is_empty());
        assert_eq!(markdown.open().unwrap().plain(), "some **bo");
        assert!(markdown.push("ld**").is_empty());
        assert_eq!(markdown.open().unwrap().plain(), "some bold");
        assert_eq!(markdown.push("\n").len(), 1);
        assert!(markdown.open().is_none());
    }

    #[test]
    fn a_very_long_line_is_given_out_in_pieces() {
        let mut markdown = Markdown::default();
        let mut text = String::new();
        for _ in 0..3000 {
            for line in markdown.push("words ") {
                text.push_str(&line.plain());
                text.push(' ');
            }
            assert!(markdown.open.len() <= OPEN_LINE_BYTES_MAX);
        }
        text.extend(markdown.end().iter().map(Line::plain));
        assert_eq!(text.split_whitespace().count(), 3000);
    }

    #[test]
    fn many_lines_and_long_ones_take_time_by_their_length() {
        let begun = std::time::Instant::now();
        let many = "a\n".repeat(1 << 20);
        assert_eq!(whole(&many).len(), 1 << 20);
        // Marks that are never closed are each looked for up to the end of the line.
        let marks = "[a *b `` ".repeat(1 << 17);
        assert_eq!(whole(&marks)[0].plain(), marks.trim_end());
        assert_eq!(whole(&format!("{marks}\nb"))[0].plain(), marks.trim_end());
        // Were it by the square of the length, it would be many minutes.
        assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
    }

    proptest! {
        /// What pieces a text came in makes no difference.
        #[test]
        fn cuts_make_no_difference(
            text in "[-#*`_~>a1. \n|\\[\\]()!\x1b]{0,80}",
            at in 0usize..80,
        ) {
            let at = at.min(text.len());
            let mut markdown = Markdown::default();
            let mut lines = markdown.push(&text[..at]);
            let _ = markdown.open();
            lines.extend(markdown.push(&text[at..]));
            lines.extend(markdown.end());
            prop_assert_eq!(lines, whole(&text));
        }

        #[test]
        fn no_text_is_an_escape(text in any::<String>()) {
            for line in whole(&text) {
                let written = line.write(Colours::Off);
                prop_assert!(!written.chars().any(char::is_control), "{written:?}");
            }
        }
    }
}
