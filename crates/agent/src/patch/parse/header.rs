//! The line that opens a hunk: `@@`, `@@ some line of the file`, or `@@ -1,3 +1,4 @@ heading`.

use super::Hint;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    Bare,
    Anchor(String),
    Hint(Hint),
}

/// Reads what follows the first `@@`.
pub(super) fn read(text: &str) -> Header {
    let text = text.trim();
    if let Some(hint) = numbers(text) {
        return Header::Hint(hint);
    }
    // Some write `@@ anchor @@`; the anchor without its tail is found in the same line.
    let anchor = text.strip_suffix("@@").unwrap_or(text).trim_end();
    if anchor.is_empty() { Header::Bare } else { Header::Anchor(anchor.to_owned()) }
}

fn numbers(text: &str) -> Option<Hint> {
    let (start, count, rest) = range(text.strip_prefix('-')?)?;
    let (_, _, rest) = range(rest.trim_start().strip_prefix('+')?)?;
    let rest = rest.trim_start();
    let heading = if rest.is_empty() { "" } else { rest.strip_prefix("@@")?.trim() };
    let heading = (!heading.is_empty()).then(|| heading.to_owned());
    Some(Hint { start, count, heading })
}

/// `12,3` or `12`, and the rest.
fn range(text: &str) -> Option<(usize, usize, &str)> {
    let (start, rest) = number(text)?;
    match rest.strip_prefix(',') {
        Some(rest) => number(rest).map(|(count, rest)| (start, count, rest)),
        None => Some((start, 1, rest)),
    }
}

fn number(text: &str) -> Option<(usize, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    if number.is_empty() {
        return None;
    }
    // A number too large for any file is as good as the largest.
    Some((number.parse().unwrap_or(usize::MAX), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(start: usize, count: usize, heading: &str) -> Header {
        let heading = (!heading.is_empty()).then(|| heading.to_owned());
        Header::Hint(Hint { start, count, heading })
    }

    #[test]
    fn headers() {
        let cases = [
            ("", Header::Bare),
            ("  ", Header::Bare),
            (" @@", Header::Bare),
            (" -1,3 +1,4 @@", hint(1, 3, "")),
            (" -12 +14 @@ fn main() {", hint(12, 1, "fn main() {")),
            (" -1,3 +1,4", hint(1, 3, "")),
            (" -0,0 +1,4 @@", hint(0, 0, "")),
            (" -99999999999999999999999,1 +1 @@", hint(usize::MAX, 1, "")),
            (" fn b()", Header::Anchor("fn b()".into())),
            (" fn b() @@", Header::Anchor("fn b()".into())),
            (" -1,3", Header::Anchor("-1,3".into())),
            (" - item", Header::Anchor("- item".into())),
            (" -1,x +1 @@", Header::Anchor("-1,x +1".into())),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}
