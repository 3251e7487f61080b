//! How options are written in the tables, and how words are taken for them.
//!
//! A table lists options with blanks between them:
//!
//! | written          | means                                                           |
//! |------------------|-----------------------------------------------------------------|
//! | `-abc`           | `-a`, `-b` and `-c`, alone or together                          |
//! | `-n=number`      | `-n 5` or `-n5`                                                 |
//! | `-n:number`      | the same, digits alone, and never behind other letters          |
//! | `-w?number`      | `-w` or `-w5`                                                   |
//! | `-#`             | `-5`                                                            |
//! | `--name`         | `--name`                                                        |
//! | `--name=number`  | `--name=5` or `--name 5`                                        |
//! | `--name?word`    | `--name` or `--name=text`                                       |
//!
//! A value is a `number`, a `word` (any text), a `path` (a file that may be read), or one of some
//! words: `always|auto|never`.

use std::collections::HashMap;

use super::super::expand::{Arg, Kind};
use super::super::path::Want;
use super::Call;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Joined to the option, or the next word.
    Value(&'static str),
    /// The next word, or digits joined to it, if no other option is in the same word: some programs
    /// see only the first, others take each letter for an option.
    Next(&'static str),
    /// Joined to the option, if there is one.
    Maybe(&'static str),
}

pub(super) struct Spec {
    options: HashMap<String, Takes>,
    numbers: bool,
}

/// The words of a command, told apart.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Each option as the table writes it, with its value.
    pub(super) options: Vec<(String, Option<Arg>)>,
    pub(super) operands: Vec<Arg>,
    /// An option stands behind an operand.
    pub(super) mixed: bool,
}

impl Parsed {
    /// Whether one of the options in a list was given.
    pub(super) fn has_any(&self, list: &str) -> bool {
        let listed = |option: &str| list.split(' ').any(|name| name == option);
        self.options.iter().any(|(option, _)| listed(option))
    }

    /// Whether all options are in one of two lists.
    pub(super) fn has_only(&self, one: &str, other: &str) -> bool {
        let listed = |option: &str| one.split(' ').chain(other.split(' ')).any(|n| n == option);
        self.options.iter().all(|(option, _)| listed(option))
    }

    pub(super) fn values<'p>(&'p self, list: &'p str) -> impl Iterator<Item = &'p Arg> {
        let listed = move |option: &str| list.split(' ').any(|name| name == option);
        let given = self.options.iter().filter(move |(option, _)| listed(option));
        given.filter_map(|(_, value)| value.as_ref())
    }
}

impl Spec {
    pub(super) fn of(table: &'static str) -> Spec {
        Spec::of_all(&[table])
    }

    pub(super) fn of_all(tables: &[&'static str]) -> Spec {
        let mut spec = Spec { options: HashMap::new(), numbers: false };
        for entry in tables.iter().flat_map(|table| table.split_whitespace()) {
            let at = entry.find(['=', ':', '?']).unwrap_or(entry.len());
            let (name, value) = entry.split_at(at);
            let kind = value.get(1..).unwrap_or_default();
            let takes = match value.get(..1) {
                Some("=") => Takes::Value(kind),
                Some(":") => Takes::Next(kind),
                Some(_) => Takes::Maybe(kind),
                None => Takes::Nothing,
            };
            match name.strip_prefix('-') {
                Some("#") => spec.numbers = true,
                Some(letters) if !letters.starts_with('-') && takes == Takes::Nothing => {
                    let each = letters.chars().map(|letter| (format!("-{letter}"), takes));
                    spec.options.extend(each);
                }
                _ => {
                    spec.options.insert(name.to_owned(), takes);
                }
            }
        }
        // Every program in the tables understands these, and does nothing else then.
        for name in ["--help", "--version"] {
            spec.options.entry(name.to_owned()).or_insert(Takes::Nothing);
        }
        spec
    }

    /// Tells options from operands; each option must be known.
    pub(super) fn parse(&self, call: &Call<'_, '_>, args: &[Arg]) -> Result<Parsed, String> {
        let mut parsed = Parsed::default();
        let mut args = args.iter();
        let mut options = true;
        while let Some(arg) = args.next() {
            let dashed = arg.text.starts_with('-') && arg.text.len() > 1;
            match &arg.kind {
                Kind::Literal if options && arg.text == "--" => options = false,
                Kind::Literal if options && dashed => {
                    parsed.mixed |= !parsed.operands.is_empty();
                    self.option(call, arg, &mut args, &mut parsed)?;
                }
                Kind::Literal | Kind::Matched | Kind::Pipe | Kind::Found(_) => {
                    parsed.operands.push(arg.clone());
                }
                // It may be an option, unless it is known to begin with something else.
                Kind::Unknown if !options || !(dashed || arg.text.is_empty()) => {
                    parsed.operands.push(arg.clone());
                }
                Kind::Unknown | Kind::AnyWords => {
                    return Err(format!("`{}` gets words that are not known yet", call.program));
                }
            }
        }
        Ok(parsed)
    }

    /// Takes options up to the first word that is none; the rest is a command of its own.
    pub(super) fn parse_leading<'a>(
        &self,
        call: &Call<'_, '_>,
        args: &'a [Arg],
    ) -> Result<(Parsed, &'a [Arg]), String> {
        let mut parsed = Parsed::default();
        let mut rest = args.iter();
        loop {
            let command = rest.as_slice();
            match rest.next().map(|arg| (arg, arg.exact())) {
                Some((_, Some("--"))) => return Ok((parsed, rest.as_slice())),
                Some((arg, Some(text))) if text.starts_with('-') && text.len() > 1 => {
                    self.option(call, arg, &mut rest, &mut parsed)?;
                }
                _ => return Ok((parsed, command)),
            }
        }
    }

    fn option<'a>(
        &self,
        call: &Call<'_, '_>,
        arg: &Arg,
        rest: &mut impl Iterator<Item = &'a Arg>,
        parsed: &mut Parsed,
    ) -> Result<(), String> {
        let unknown =
            || format!("`{}` with the option `{}` is not on the list", call.program, arg.shown());
        let text = arg.text.as_str();
        // Behind an operand some programs take no options any more, but all words for files.
        let late = !parsed.operands.is_empty();
        if text.starts_with("--") {
            let (name, joined) = match text.split_once('=') {
                Some((name, value)) => (name, Some(Arg::literal(value))),
                None => (text, None),
            };
            let takes = *self.options.get(name).ok_or_else(unknown)?;
            let value = match (takes, joined) {
                (Takes::Nothing, None) | (Takes::Maybe(_), None) => None,
                (Takes::Nothing, Some(_)) => return Err(unknown()),
                (Takes::Value(kind) | Takes::Next(kind) | Takes::Maybe(kind), Some(value)) => {
                    Some(check_value(call, kind, &value).map(|()| value).ok_or_else(unknown)?)
                }
                (Takes::Value(kind) | Takes::Next(kind), None) => {
                    // Some other version of the program might take the word for an operand.
                    Some(next_value(call, kind, rest, true).ok_or_else(unknown)?)
                }
            };
            parsed.options.push((name.to_owned(), value));
            return Ok(());
        }
        let letters = text.strip_prefix('-').unwrap_or(text);
        if self.numbers && letters.bytes().all(|b| b.is_ascii_digit()) {
            parsed.options.push(("-#".to_owned(), Some(Arg::literal(letters))));
            return Ok(());
        }
        let mut letters = letters.chars();
        let mut first = true;
        while let Some(letter) = letters.next() {
            let name = format!("-{letter}");
            let joined = letters.as_str();
            let value = match *self.options.get(&name).ok_or_else(unknown)? {
                Takes::Nothing => {
                    parsed.options.push((name, None));
                    first = false;
                    continue;
                }
                Takes::Maybe(_) if joined.is_empty() => None,
                Takes::Value(kind) | Takes::Maybe(kind) if !joined.is_empty() => {
                    let value = Arg::literal(joined);
                    Some(check_value(call, kind, &value).map(|()| value).ok_or_else(unknown)?)
                }
                Takes::Next(kind) if joined.is_empty() && first => {
                    Some(next_value(call, kind, rest, late).ok_or_else(unknown)?)
                }
                // Whoever takes letters for options finds none among digits.
                Takes::Next("number") if first && joined.bytes().all(|b| b.is_ascii_digit()) => {
                    Some(Arg::literal(joined))
                }
                Takes::Value(kind) => Some(next_value(call, kind, rest, late).ok_or_else(unknown)?),
                Takes::Next(_) | Takes::Maybe(_) => return Err(unknown()),
            };
            parsed.options.push((name, value));
            return Ok(());
        }
        Ok(())
    }
}

/// The next word; one that might be taken for an operand must be a file that may be read.
fn next_value<'a>(
    call: &Call<'_, '_>,
    kind: &str,
    rest: &mut impl Iterator<Item = &'a Arg>,
    perhaps_operand: bool,
) -> Option<Arg> {
    let value = rest.next().filter(|value| value.is_single())?;
    let plain = || !value.text.starts_with('-') && call.path(value, Want::Content).is_ok();
    if perhaps_operand && kind == "word" && !plain() {
        return None;
    }
    check_value(call, kind, value).map(|()| value.clone())
}

fn check_value(call: &Call<'_, '_>, kind: &str, value: &Arg) -> Option<()> {
    let fits = match kind {
        "word" => true,
        "number" => value.exact().is_some_and(is_number),
        "path" => call.path(value, Want::Content).is_ok(),
        words => value.exact().is_some_and(|text| words.split('|').any(|word| word == text)),
    };
    fits.then_some(())
}

/// `20`, `+20` or `-20`, perhaps with a unit: lines or bytes, from either end.
pub(super) fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < digits.len()
        && unit.len() <= 3
        && unit.bytes().all(|b| b.is_ascii_alphabetic() || b == b'%' || b == b'.')
}
