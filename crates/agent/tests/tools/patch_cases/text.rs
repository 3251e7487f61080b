//! Reads the cases: sections of Markdown with fenced blocks. What it does not understand is a
//! fault of the case.

use std::path::Path;

/// A section: its number, and its blocks in order.
pub struct Case {
    pub id: String,
    pub title: String,
    pub blocks: Vec<Block>,
}

pub struct Block {
    pub kind: String,
    pub text: String,
}

impl Block {
    /// Its lines, each split into its first word and the rest.
    pub fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.text.lines().filter(|line| !line.is_empty());
        lines.map(|line| line.split_once(' ').unwrap_or((line, "")))
    }
}

pub fn cases(markdown: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut open: Option<(String, Block)> = None;
    for line in markdown.lines() {
        if let Some((fence, block)) = &mut open {
            if line == fence.as_str() {
                let (_, block) = open.take().unwrap();
                cases.last_mut().expect("a block before the first case").blocks.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
            }
            continue;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            let (id, title) = heading.split_once(' ').expect(heading);
            let (id, title) = (id.to_owned(), title.to_owned());
            cases.push(Case { id, title, blocks: Vec::new() });
        }
        let ticks = line.chars().take_while(|&c| c == '`').count();
        if ticks >= 3 {
            let (fence, kind) = line.split_at(ticks);
            let block = Block { kind: kind.to_owned(), text: String::new() };
            open = Some((fence.to_owned(), block));
        }
    }
    assert!(open.is_none(), "a block is not closed: {:?}", open.map(|(_, block)| block.text));
    cases
}

/// A text with what stands in braces put in.
pub fn filled(text: &str, inside: &Path, outside: &Path) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        let put = behind.split_once('}').and_then(|(word, after)| {
            let put = match word {
                "W" => inside.to_str().unwrap().to_owned(),
                "OUT" => outside.to_str().unwrap().to_owned(),
                "NUL" => "\0".to_owned(),
                "CR" => "\r".to_owned(),
                "ESC" => "\u{1b}".to_owned(),
                word => special(word)?,
            };
            Some((put, after))
        });
        match put {
            Some((put, after)) => {
                filled.push_str(&put);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = behind;
            }
        }
    }
    filled + rest
}

/// `U+202E`, or `256 n`.
fn special(word: &str) -> Option<String> {
    if let Some(code) = word.strip_prefix("U+") {
        return char::from_u32(u32::from_str_radix(code, 16).ok()?).map(String::from);
    }
    let (count, piece) = word.split_once(' ')?;
    Some(piece.repeat(count.parse().ok()?))
}
