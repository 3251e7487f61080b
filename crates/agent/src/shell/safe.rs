//! The commands that run without asking: exact names, exact options, paths that are looked up.

use std::path::Path;

use super::path::check_readable;
use super::show::{brief, is_deceptive, visible};
use super::{SAFE_PATH, Scope, WORDS_MAX};

/// One program and the words it may get.
struct Rule {
    program: &'static str,
    /// Options of one letter, without a value; they may stand together.
    short: &'static str,
    /// Options of one letter that take a number, joined or as the next word.
    numbers: &'static str,
    /// Options with a whole name; one that ends with `=` takes a number.
    long: &'static [&'static str],
    operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    None,
    /// Only printed; options are words too.
    Words,
    Paths,
    /// Of `date`: how to write it, never what to set it to.
    Format,
}

const NOTHING: Rule =
    Rule { program: "", short: "", numbers: "", long: &[], operands: Operands::None };

/// Left out on purpose: whatever follows links (`ls -L`), takes names from a file
/// (`wc --files0-from`), waits (`tail -f`) or sets something (`date -s`).
const RULES: &[Rule] = &[
    Rule { program: "true", ..NOTHING },
    Rule { program: "false", ..NOTHING },
    Rule { program: "pwd", short: "LP", ..NOTHING },
    Rule { program: "echo", operands: Operands::Words, ..NOTHING },
    Rule { program: "whoami", ..NOTHING },
    Rule { program: "groups", ..NOTHING },
    Rule { program: "nproc", long: &["--all"], ..NOTHING },
    Rule { program: "arch", ..NOTHING },
    Rule { program: "id", short: "ugGnr", ..NOTHING },
    Rule { program: "uname", short: "asnrvmpio", long: &["--all"], ..NOTHING },
    Rule {
        program: "date",
        short: "u",
        long: &["--utc", "--universal"],
        operands: Operands::Format,
        ..NOTHING
    },
    Rule {
        program: "ls",
        short: "1aAbBcCdfFgGhiklmnNopqQrRsStuUvxX",
        long: &[
            "--all",
            "--almost-all",
            "--classify",
            "--color",
            "--color=always",
            "--color=auto",
            "--color=never",
            "--directory",
            "--full-time",
            "--group-directories-first",
            "--human-readable",
            "--inode",
            "--no-group",
            "--numeric-uid-gid",
            "--recursive",
            "--reverse",
            "--si",
            "--size",
            "--sort=extension",
            "--sort=none",
            "--sort=size",
            "--sort=time",
            "--sort=version",
        ],
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        program: "cat",
        short: "AbeEnstTuv",
        long: &[
            "--number",
            "--number-nonblank",
            "--show-all",
            "--show-ends",
            "--show-nonprinting",
            "--show-tabs",
            "--squeeze-blank",
        ],
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule { program: "head", operands: Operands::Paths, ..ENDS },
    Rule { program: "tail", operands: Operands::Paths, ..ENDS },
    Rule {
        program: "wc",
        short: "clLmw",
        long: &["--bytes", "--chars", "--lines", "--max-line-length", "--words"],
        operands: Operands::Paths,
        ..NOTHING
    },
];

/// What `head` and `tail` have in common.
const ENDS: Rule = Rule {
    short: "qvz",
    numbers: "nc",
    long: &["--bytes=", "--lines=", "--quiet", "--silent", "--verbose", "--zero-terminated"],
    ..NOTHING
};

/// Bash has these itself, so no file is looked up.
const BUILTINS: &[&str] = &["echo", "false", "pwd", "true"];

/// Says what a safe command does; the error says what was not understood or is not on the list.
pub(super) fn check(argv: &[String], scope: &Scope) -> Result<String, String> {
    check_characters(argv)?;
    let Some((program, rest)) = argv.split_first() else { return Err("it is empty".to_owned()) };
    let Some(rule) = RULES.iter().find(|rule| rule.program == program) else {
        let program = brief(program);
        return Err(format!("`{program}` is not on the list of commands known to be harmless"));
    };
    check_program(program, scope)?;
    if rest.len() > WORDS_MAX {
        return Err(format!("`{program}` has more than {WORDS_MAX} words, too many to look up"));
    }
    rule.check_words(rest, scope)?;
    Ok(match rule.operands {
        Operands::Paths => format!("`{program}` only reads, inside the working directory"),
        Operands::None | Operands::Words | Operands::Format => {
            format!("`{program}` changes nothing")
        }
    })
}

/// A safe command is shown to nobody before it runs, but its words are in every history.
fn check_characters(argv: &[String]) -> Result<(), String> {
    let unusual = |c: &char| is_deceptive(*c) || !(c.is_ascii() || c.is_alphanumeric());
    match argv.iter().flat_map(|word| word.chars()).find(unusual) {
        Some(c) if is_deceptive(c) => {
            let code = visible(&c.to_string());
            Err(format!("it holds {code}, a character that cannot be seen for what it is"))
        }
        Some(c) => Err(format!("it holds the unusual character {c}")),
        None => Ok(()),
    }
}

/// The name must mean the system's own program, and not one that the session could have written.
fn check_program(program: &str, scope: &Scope) -> Result<(), String> {
    let mut places = SAFE_PATH.split(':').map(Path::new);
    if places.clone().any(|place| place.starts_with(&scope.cwd)) {
        return Err("the working directory holds the system's programs".to_owned());
    }
    if BUILTINS.contains(&program) || places.any(|place| place.join(program).is_file()) {
        return Ok(());
    }
    Err(format!("`{program}` is not in {SAFE_PATH}"))
}

impl Rule {
    fn check_words(&self, words: &[String], scope: &Scope) -> Result<(), String> {
        if self.operands == Operands::Words {
            return Ok(());
        }
        let mut words = words.iter();
        let mut options = true;
        while let Some(word) = words.next() {
            if options && word == "--" {
                options = false;
            } else if options && word.starts_with('-') && word.len() > 1 {
                if self.check_option(word)? == Takes::NextWord {
                    self.check_number(word, words.next())?;
                }
            } else {
                self.check_operand(word, scope)?;
            }
        }
        Ok(())
    }

    fn check_option(&self, word: &str) -> Result<Takes, String> {
        let unknown = || {
            let (program, option) = (self.program, brief(word));
            format!("`{program}` with the option `{option}` is not on the list")
        };
        if word.starts_with("--") {
            let (name, number) = match word.split_once('=') {
                Some((name, value)) if is_number(value) => (format!("{name}="), true),
                Some(_) | None => (word.to_owned(), false),
            };
            let known = self.long.contains(&name.as_str()) && (number == name.ends_with('='));
            return if known { Ok(Takes::Nothing) } else { Err(unknown()) };
        }
        let letters = word.strip_prefix('-').unwrap_or(word);
        // `head -20`, the old way to give a number.
        if !self.numbers.is_empty() && letters.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(Takes::Nothing);
        }
        let value = letters.trim_start_matches(|c| self.short.contains(c));
        let mut value = value.chars();
        match value.next() {
            None => Ok(Takes::Nothing),
            Some(letter) if self.numbers.contains(letter) => match value.as_str() {
                "" => Ok(Takes::NextWord),
                number if is_number(number) => Ok(Takes::Nothing),
                _ => Err(unknown()),
            },
            Some(_) => Err(unknown()),
        }
    }

    fn check_number(&self, option: &str, value: Option<&String>) -> Result<(), String> {
        match value {
            Some(value) if is_number(value) => Ok(()),
            _ => Err(format!("`{} {option}` is not followed by a number", self.program)),
        }
    }

    fn check_operand(&self, word: &str, scope: &Scope) -> Result<(), String> {
        match self.operands {
            // `-` is standard input, and that is empty.
            Operands::Paths if word == "-" => Ok(()),
            Operands::Paths => check_readable(word, scope),
            Operands::Format if word.starts_with('+') => Ok(()),
            Operands::Words => Ok(()),
            Operands::Format | Operands::None => {
                Err(format!("`{}` with `{}` is not on the list", self.program, brief(word)))
            }
        }
    }
}

/// Whether the value of an option is still to come.
#[derive(PartialEq, Eq)]
enum Takes {
    Nothing,
    NextWord,
}

/// `20`, `+20` or `-20`: lines or bytes, from either end.
fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
