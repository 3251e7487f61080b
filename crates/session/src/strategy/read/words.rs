//! Verdicts as models write them: a word, a number, the number of a choice.

/// Lines at the end of an answer in which a verdict may stand among other words.
const LAST_LINES: usize = 3;
/// A verdict that stands alone on a line further up has no more words than this.
const ALONE_WORDS_MAX: usize = 4;
/// What a number without a measure is of, as it was asked for.
const ASKED_SCALE: f64 = 10.0;
/// What people measure by beside it.
const SCALES: [f64; 4] = [5.0, 10.0, 100.0, 1_000.0];
const LABELS: [&str; 7] = ["score", "value", "rating", "grade", "verdict", "answer", "result"];
const CHOICES: [&str; 7] = ["choice", "option", "candidate", "number", "way", "vote", "proposal"];
const BEST: &str = "best";
const NEGATIONS: [&str; 6] = ["not", "never", "cannot", "hardly", "no", "t"];
/// Between a negation and what it is about.
const FILLERS: [&str; 15] = [
    "be",
    "very",
    "at",
    "all",
    "so",
    "really",
    "quite",
    "entirely",
    "completely",
    "a",
    "an",
    "the",
    "that",
    "yet",
    "too",
];

/// What something is worth, in thousandths.
pub fn worth(text: &str) -> Option<u32> {
    let lower = text.to_lowercase();
    verdict_lines(&lower).into_iter().find_map(|line| {
        let numbers = numbers(line);
        let asked = said(line, asked_word);
        asked.or_else(|| part_of(line, &numbers)).or_else(|| bare(line, &numbers)).or_else(|| {
            // Words that nobody asked for.
            said(line, other_word)
        })
    })
}

/// Which of so many is the best, from 1.
pub fn choice(text: &str, of: usize) -> Option<usize> {
    let lower = text.to_lowercase();
    verdict_lines(&lower).into_iter().find_map(|line| choice_in(line, of))
}

/// Whether it is said to be complex rather than simple.
pub fn complex(text: &str) -> Option<bool> {
    let lower = text.to_lowercase();
    verdict_lines(&lower).into_iter().find_map(|line| {
        said(line, |word, negated| match word {
            "simple" => Some(negated),
            "complex" => Some(!negated),
            _ => None,
        })
    })
}

/// A number that was asked for between 0 and 10, in thousandths. One with a point may be a part of
/// one.
pub fn scaled(number: f64, has_point: bool) -> Option<u32> {
    let of = match number {
        n if n <= 1.0 && has_point => 1.0,
        n if n <= ASKED_SCALE => ASKED_SCALE,
        n if n <= 100.0 => 100.0,
        _ => return None,
    };
    thousandths(number, of)
}

/// Between 0 and 1,000.
pub fn thousandths(number: f64, of: f64) -> Option<u32> {
    let part = number / of * 1_000.0;
    part.is_finite().then(|| part.clamp(0.0, 1_000.0).round() as u32)
}

/// Where a verdict may stand, the likeliest first: the last lines, then such on which hardly
/// anything else stands.
fn verdict_lines(text: &str) -> Vec<&str> {
    let all: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let all = match &all[..] {
        [first, rest @ ..] if !rest.is_empty() && greets(first) => rest,
        all => all,
    };
    let (above, last) = all.split_at(all.len().saturating_sub(LAST_LINES));
    let alone = |line: &&&str| words(line).take(ALONE_WORDS_MAX + 1).count() <= ALONE_WORDS_MAX;
    last.iter().rev().chain(above.iter().rev().filter(alone)).copied().collect()
}

/// "Sure! Let me see" is no verdict.
fn greets(line: &str) -> bool {
    let rest = line.strip_prefix("sure").or_else(|| line.strip_prefix("certainly"));
    rest.is_some_and(|rest| rest.starts_with(['!', ',']))
}

fn words(line: &str) -> impl DoubleEndedIterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The last word of a line that says something, and whether it is negated.
fn said<T>(line: &str, meaning: impl Fn(&str, bool) -> Option<T>) -> Option<T> {
    let (mut found, mut negated) = (None, false);
    for word in words(line) {
        found = meaning(word, negated).or(found);
        negated = NEGATIONS.contains(&word) || negated && FILLERS.contains(&word);
    }
    found
}

fn asked_word(word: &str, negated: bool) -> Option<u32> {
    Some(match (word, negated) {
        ("sure" | "certain", false) => 1_000,
        ("likely", false) | ("unlikely", true) => 500,
        ("sure" | "certain" | "impossible", true) => 300,
        ("unlikely", false) | ("likely", true) => 100,
        ("impossible", false) => 0,
        _ => return None,
    })
}

fn other_word(word: &str, negated: bool) -> Option<u32> {
    Some(match (word, negated) {
        ("solved" | "correct" | "excellent", false) => 1_000,
        ("promising" | "good" | "probable", false) => 500,
        ("wrong" | "incorrect" | "hopeless", true) => 500,
        ("possible" | "maybe" | "unsure" | "uncertain", false) => 300,
        ("poor" | "weak", true) => 300,
        ("poor" | "weak", false) | ("promising" | "good" | "probable", true) => 100,
        ("wrong" | "incorrect" | "hopeless", false) => 0,
        ("solved" | "correct" | "excellent" | "possible", true) => 0,
        _ => return None,
    })
}

/// A number as it stands in a line.
struct Number {
    value: f64,
    has_point: bool,
    negative: bool,
    start: usize,
    end: usize,
}

fn numbers(line: &str) -> Vec<Number> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(start) = line[at..].find(|c: char| c.is_ascii_digit()).map(|start| at + start) {
        let tail = &line[start..];
        let end = tail.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(tail.len());
        let written = tail[..end].trim_end_matches('.');
        at = start + end;
        // `v2` and `x1` are names.
        let before = line[..start].chars().next_back();
        if before.is_some_and(|c| c.is_alphabetic() && c.is_ascii()) {
            continue;
        }
        if let Ok(value) = written.parse::<f64>() {
            let (has_point, end) = (written.contains('.'), start + written.len());
            let negative =
                before == Some('-') && !line[..start - 1].ends_with(char::is_alphanumeric);
            numbers.push(Number { value, has_point, negative, start, end });
        }
    }
    numbers
}

/// `8/10`, `8 out of 10`, `80%`: the last of them.
fn part_of(line: &str, numbers: &[Number]) -> Option<u32> {
    let followed = |at: usize| {
        let (number, next) = (&numbers[at], numbers.get(at + 1));
        if line[number.end..].trim_start().starts_with('%') {
            return (number.value <= 100.0).then_some((number.value, 100.0));
        }
        let of = next?;
        let between = line[number.end..of.start].trim_matches([' ', '*']);
        let joins = ["/", "out of", "of"].contains(&between);
        // Of anything else only where nothing follows: it may be a part of a calculation.
        let measures = SCALES.contains(&of.value) || is_end(&line[of.end..]);
        let fits = measures && number.value <= of.value && of.value > 0.0;
        (joins && fits).then_some((number.value, of.value))
    };
    let (number, of) = (0..numbers.len()).rev().find_map(followed)?;
    thousandths(number, of)
}

/// No word stands there.
fn is_end(text: &str) -> bool {
    !text.contains(char::is_alphanumeric)
}

/// A number with a word before it that says what it is, or one that a line begins or ends with.
fn bare(line: &str, numbers: &[Number]) -> Option<u32> {
    let labelled = |number: &&Number| {
        let before = words(&line[..number.start]);
        before.rev().take(2).any(|word| LABELS.contains(&word))
    };
    let at_end = |number: &&Number| is_end(&line[..number.start]) || is_end(&line[number.end..]);
    let own = numbers.iter().rev().take(LAST_LINES);
    let number = own.clone().find(labelled).or_else(|| own.clone().find(at_end))?;
    match number.negative {
        true => Some(0),
        false => scaled(number.value, number.has_point),
    }
}

fn choice_in(line: &str, of: usize) -> Option<usize> {
    let place = |number: &Number| {
        let whole = !number.has_point && !number.negative && number.value <= of as f64;
        (whole && number.value >= 1.0).then_some(number.value as usize)
    };
    // "2 of 3" is a two.
    let counts = |number: &&Number| {
        let before = line[..number.start].trim_end_matches([' ', '*']);
        !before.ends_with('/') && words(before).next_back() != Some("of")
    };
    let labelled = |number: &&Number| {
        let before = &line[..number.start];
        let marked = before.trim_end_matches(['*', ' ', '(']).ends_with('#');
        let word = before.trim_end_matches(|c: char| !c.is_alphanumeric());
        marked || CHOICES.iter().any(|label| word.ends_with(label))
    };
    let all = numbers(line);
    let all: Vec<&Number> = all.iter().filter(counts).filter(|n| place(n).is_some()).collect();
    let named: Vec<&Number> = all.iter().copied().filter(labelled).collect();
    let among = if named.is_empty() { all } else { named };
    let mut places: Vec<usize> = among.iter().filter_map(|number| place(number)).collect();
    places.dedup();
    match places[..] {
        [one] => Some(one),
        [] => None,
        // Of several the one that is called the best, if one is.
        _ => {
            let best = line.rfind(BEST)?;
            let nearest = among.iter().min_by_key(|number| number.start.abs_diff(best))?;
            place(nearest)
        }
    }
}
