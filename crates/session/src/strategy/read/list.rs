//! Lists as models write them: numbered, dashed, with headings, with points below points.

/// What an entry of a list begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Number(u32),
    Dash,
}

struct Entry<'a> {
    mark: Mark,
    /// How far it is set in.
    indent: usize,
    text: &'a str,
}

/// The entries of the last list, each with the lines that go on with it.
pub fn list(text: &str) -> Vec<String> {
    let lines = || text.lines().filter(|line| !line.trim_start().starts_with("```"));
    let entries = || lines().filter_map(entry);
    // Where some are numbered, dashes are points below them.
    let numbered = entries().filter(|entry| matches!(entry.mark, Mark::Number(_))).count() > 1;
    let counts = |entry: &Entry<'_>| !numbered || matches!(entry.mark, Mark::Number(_));
    let indent = entries().filter(counts).map(|entry| entry.indent).min().unwrap_or(0);
    let (mut found, mut last): (Vec<String>, u32) = (Vec::new(), 0);
    for line in lines().filter(|line| !line.trim().is_empty()) {
        match entry(line) {
            Some(entry) if counts(&entry) && entry.indent == indent => {
                if let Mark::Number(number) = entry.mark {
                    // It begins anew, so what came before is another list.
                    if number <= 1 && last > 1 {
                        found.clear();
                    }
                    last = number;
                }
                found.push(entry.text.to_owned());
            }
            below => {
                let is_below = below.is_some() || line.starts_with([' ', '\t']);
                if let Some(above) = found.last_mut().filter(|_| is_below) {
                    above.push(' ');
                    above.push_str(below.map_or(line.trim(), |below| below.text));
                }
            }
        }
    }
    found.retain(|entry| entry.contains(char::is_alphanumeric));
    found
}

/// What stands behind `1.`, `1)`, `(1)`, `-`, `*`, `•`, or a word and a number with a colon.
fn entry(line: &str) -> Option<Entry<'_>> {
    let bare = line.trim_start();
    let indent = line.len() - bare.len();
    let bare = bare.trim_end().trim_start_matches('#').trim_start();
    let (bold, bare) = match bare.strip_prefix("**") {
        Some(rest) => (true, rest),
        None => (false, bare),
    };
    let (mark, text) = numbered(bare).or_else(|| named(bare)).or_else(|| {
        let rest = bare.strip_prefix(['-', '*', '+', '•', '–', '—', '·']).filter(|_| !bold)?;
        rest.starts_with([' ', '\t']).then_some((Mark::Dash, rest))
    })?;
    let text = text.trim();
    // What was opened before the number is closed behind the text.
    let text = match bold && text.matches("**").count() % 2 == 1 {
        true => text.strip_prefix("**").or_else(|| text.strip_suffix("**")).unwrap_or(text).trim(),
        false => text,
    };
    Some(Entry { mark, indent, text })
}

fn numbered(line: &str) -> Option<(Mark, &str)> {
    let line = line.strip_prefix(['(', '（', '[']).unwrap_or(line);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if !(1..=3).contains(&digits) {
        return None;
    }
    let rest = line[digits..].strip_prefix(['.', ')', ':', ']', '、', '．', '）', '：'])?;
    // `1.5` and `10:30` are no numbers of a list.
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((Mark::Number(line[..digits].parse().ok()?), rest))
}

/// `Step 1: …`, `Option B: …`.
fn named(line: &str) -> Option<(Mark, &str)> {
    let (name, rest) = line.split_once(':')?;
    let (word, number) = name.trim_end_matches("**").split_once(' ')?;
    let kinds = ["candidate", "thought", "option", "step", "proposal", "choice", "task", "subtask"];
    if !kinds.contains(&word.to_lowercase().as_str()) {
        return None;
    }
    let number = match number.trim().as_bytes() {
        [letter @ (b'a'..=b'z' | b'A'..=b'Z')] => u32::from(letter.to_ascii_lowercase() - b'a') + 1,
        _ => number.trim().parse().ok()?,
    };
    // What was opened before the word is closed behind the colon, or before it.
    Some((Mark::Number(number), rest.strip_prefix("**").unwrap_or(rest)))
}
