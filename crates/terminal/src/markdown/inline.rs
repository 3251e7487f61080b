//! Emphasis, code and links inside a line.

use crate::style::{Colour, Span, Style};

const CODE: Style = Style::CYAN;
const LINK: Style = Style { underline: true, ..Style::coloured(Colour::Blue) };

/// A longer line is no prose. Each mark in it is looked for up to its end, so it is left as it is.
const LINE_BYTES_MAX: usize = super::OPEN_LINE_BYTES_MAX;

/// Pieces of a line; marks that are never closed are text.
pub fn spans(text: &str, base: Style) -> Vec<Span> {
    if text.len() > LINE_BYTES_MAX {
        return vec![Span::new(text, base)];
    }
    let mut writer = Writer { made: Vec::new(), plain: String::new(), base };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = writer.take(rest, c, text.len() - rest.len(), text);
    }
    writer.flush();
    writer.made
}

struct Writer {
    made: Vec<Span>,
    plain: String,
    base: Style,
}

impl Writer {
    /// Takes what stands at the beginning of the rest; gives what is left of it.
    fn take<'a>(&mut self, rest: &'a str, c: char, at: usize, text: &str) -> &'a str {
        let after = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                if let Some(next) = after.chars().next().filter(char::is_ascii_punctuation) {
                    self.plain.push(next);
                    return &after[next.len_utf8()..];
                }
            }
            '`' => {
                if let Some((code, left)) = code(rest) {
                    self.push(Span::new(code, CODE));
                    return left;
                }
            }
            '*' | '_' | '~' => {
                // Words_with_marks_inside are words.
                let inside = c == '_' && text[..at].ends_with(char::is_alphanumeric);
                if let Some((style, inner, left)) = emphasis(rest, c, self.base)
                    && !inside
                {
                    self.flush();
                    self.made.extend(spans(inner, style));
                    return left;
                }
                // All marks of a run that opens nothing, so that none is looked at twice.
                let run = rest.chars().take_while(|next| *next == c).count();
                self.plain.push_str(&rest[..run]);
                return &rest[run..];
            }
            '[' => {
                if let Some((label, target, left)) = link(rest) {
                    self.flush();
                    self.made.push(Span::new(label, LINK));
                    if target != label {
                        self.made.push(Span::new(&format!(" ({target})"), Style::DIM));
                    }
                    return left;
                }
            }
            _ => {}
        }
        self.plain.push(c);
        after
    }

    fn push(&mut self, span: Span) {
        self.flush();
        self.made.push(span);
    }

    fn flush(&mut self) {
        if !self.plain.is_empty() {
            self.made.push(Span::new(&self.plain, self.base));
            self.plain.clear();
        }
    }
}

fn code(rest: &str) -> Option<(&str, &str)> {
    let ticks = rest.chars().take_while(|c| *c == '`').count();
    let (mark, inner) = rest.split_at(ticks);
    let end = inner.find(mark).filter(|end| *end > 0)?;
    let left = &inner[end + ticks..];
    let bare = &inner[..end];
    let padded = bare.len() > 2 && bare.starts_with(' ') && bare.ends_with(' ');
    Some((if padded { &bare[1..end - 1] } else { bare }, left))
}

fn emphasis(rest: &str, mark: char, base: Style) -> Option<(Style, &str, &str)> {
    let run = rest.chars().take_while(|c| *c == mark).count();
    let (length, style) = match (mark, run) {
        ('~', 2) => (2, Style { strike: true, ..base }),
        ('~', _) => return None,
        (_, 1) => (1, Style { italic: true, ..base }),
        (_, 2) => (2, Style { bold: true, ..base }),
        (_, 3) => (3, Style { bold: true, italic: true, ..base }),
        _ => return None,
    };
    let inner = &rest[length..];
    if inner.starts_with(char::is_whitespace) {
        return None;
    }
    let closing = mark.to_string().repeat(length);
    let mut from = 0;
    while let Some(found) = inner[from..].find(&closing) {
        let end = from + found;
        let left = &inner[end + length..];
        let blank = inner[..end].ends_with(char::is_whitespace) || end == 0;
        let longer = length == 1 && left.starts_with(mark);
        let in_word = mark == '_' && left.starts_with(char::is_alphanumeric);
        if !blank && !longer && !in_word {
            return Some((style, &inner[..end], left));
        }
        let run = left.chars().take_while(|c| *c == mark).count();
        from = end + length + run;
    }
    None
}

fn link(rest: &str) -> Option<(&str, &str, &str)> {
    let end = rest.find("](")?;
    let label = &rest[1..end];
    let target = &rest[end + 2..];
    let close = target.find(')')?;
    let whole = !label.is_empty() && !label.contains('[') && !target[..close].contains(' ');
    whole.then(|| (label, &target[..close], &target[close + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Colours, Line};

    fn written(text: &str) -> String {
        Line::new().plus(spans(text, Style::PLAIN)).write(Colours::On)
    }

    #[test]
    fn marks_become_styles() {
        assert_eq!(written("a **b** c"), "a \x1b[1mb\x1b[0m c");
        assert_eq!(written("*i* _j_"), "\x1b[3mi\x1b[0m \x1b[3mj\x1b[0m");
        assert_eq!(written("***x***"), "\x1b[1;3mx\x1b[0m");
        assert_eq!(written("~~old~~"), "\x1b[9mold\x1b[0m");
        assert_eq!(written("**a *b* c**"), "\x1b[1ma \x1b[0m\x1b[1;3mb\x1b[0m\x1b[1m c\x1b[0m");
        assert_eq!(written("`a*b*`"), "\x1b[36ma*b*\x1b[0m");
    }

    #[test]
    fn what_opens_nothing_is_text() {
        for text in ["2 * 3 * 4", "snake_case_name", "a ** b", "`open", "[a] (b)", "**", "*a"] {
            assert_eq!(written(text), text);
        }
        assert_eq!(written("\\*a\\*"), "*a*");
    }

    #[test]
    fn a_link_shows_where_it_leads() {
        let link = "\x1b[4;34mhere\x1b[0m\x1b[2m (https://x.example)\x1b[0m";
        assert_eq!(written("[here](https://x.example)"), link);
        let same = "\x1b[4;34mhttps://x.example\x1b[0m";
        assert_eq!(written("[https://x.example](https://x.example)"), same);
    }
}
