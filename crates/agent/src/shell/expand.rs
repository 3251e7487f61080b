//! What bash makes of the words of a command before it runs: braces, variables, patterns.
//!
//! Follows bash exactly where the outcome is certain, and says what is unknown where it is not.
//! Reads names in directories, never files.

use std::path::PathBuf;
use std::rc::Rc;

use super::grammar::{Body, Command, List, Piece, Word};
use super::look::Look;
use super::show::brief;
use super::walk::{State, Stream};
use super::{SCRIPT_BYTES_MAX, WORDS_MAX};

mod braces;
mod glob;

pub(super) use glob::matches;

/// One argument, or several that cannot be told apart yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arg {
    /// Its text; of unknown ones, how it begins.
    pub(super) text: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Exactly this.
    Literal,
    /// A name that a pattern matches; there may be fewer or more of them.
    Matched,
    /// One word that begins with this.
    Unknown,
    /// Any words at all, also none.
    AnyWords,
    /// The end of a pipe from commands that were judged.
    Pipe,
    /// Names of files below directories that were looked through.
    Found(Rc<Found>),
}

/// What there is below the directories in which names were found: nothing that leads out, and no
/// name that could be taken for more than one word, or for something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where they are names of something.
    pub(super) cwd: PathBuf,
    /// A name that people use for secrets.
    pub(super) secret: Option<String>,
}

impl Arg {
    pub(super) fn literal(text: &str) -> Arg {
        Arg { text: text.to_owned(), kind: Kind::Literal }
    }

    /// The text, if nothing about it is unknown.
    pub(super) fn exact(&self) -> Option<&str> {
        match self.kind {
            Kind::Literal => Some(&self.text),
            Kind::Matched | Kind::Unknown | Kind::AnyWords | Kind::Pipe | Kind::Found(_) => None,
        }
    }

    /// One word, whatever it is.
    pub(super) fn is_single(&self) -> bool {
        matches!(self.kind, Kind::Literal | Kind::Unknown | Kind::Pipe)
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        match self.kind {
            Kind::Literal | Kind::Matched => brief(&self.text),
            Kind::Unknown | Kind::AnyWords => format!("{}…", brief(&self.text)),
            Kind::Pipe => "<(…)".to_owned(),
            Kind::Found(_) => "{}".to_owned(),
        }
    }
}

/// What a variable holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Is(String),
    /// One of these names.
    Found(Rc<Found>),
    Unknown,
}

/// Variables that hold a number, whatever else is unknown.
const NUMBERS: &[&str] =
    &["?", "#", "$", "BASHPID", "EUID", "LINENO", "PPID", "RANDOM", "SECONDS", "SHLVL", "UID"];

/// What is in the names of variables that hold secrets. Commands get none of the server's, but
/// whoever asks for one is up to something.
const SECRETS: &[&str] =
    &["AUTH", "COOKIE", "CRED", "KEY", "PASS", "PRIVATE", "SECRET", "SESSION", "SIGN", "TOKEN"];

/// One character of a word that is being put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sign {
    c: char,
    /// May be part of a pattern.
    bare: bool,
}

/// A word that is being put together.
#[derive(Clone, Default)]
struct Draft {
    signs: Vec<Sign>,
    /// It is a word even if it is empty.
    quoted: bool,
    unknown: Option<Kind>,
}

/// The arguments that the words of a command become. `inner` judges the commands in them.
pub(super) fn arguments(
    words: &[Word],
    state: &State,
    look: &Look<'_>,
    inner: &mut dyn FnMut(&List) -> Result<Stream, String>,
) -> Result<Vec<Arg>, String> {
    let mut args = Vec::new();
    for word in words {
        for word in braces::expand(word)? {
            let drafts = drafts(&word, state, look, inner)?;
            for draft in drafts {
                finish(draft, state, look, &mut args)?;
            }
        }
        if args.len() > WORDS_MAX {
            break;
        }
    }
    look.count_words(&args)?;
    Ok(args)
}

/// The value of an assignment, the target of a redirection, a word of `[[ … ]]`: one word, in
/// which patterns mean nothing, and which is never split.
pub(super) fn single(
    word: &Word,
    state: &State,
    look: &Look<'_>,
    inner: &mut dyn FnMut(&List) -> Result<Stream, String>,
) -> Result<Arg, String> {
    let quoted = Word { pieces: word.pieces.iter().map(as_quoted).collect() };
    let mut drafts = drafts(&quoted, state, look, inner)?;
    check_tilde(word)?;
    match (drafts.pop(), drafts.is_empty()) {
        (None, _) => Ok(Arg::literal("")),
        (Some(draft), true) => Ok(draft.arg()),
        (Some(_), false) => Err("one word becomes several".to_owned()),
    }
}

fn as_quoted(piece: &Piece) -> Piece {
    match piece.clone() {
        Piece::Bare(text) => Piece::Quoted(text),
        Piece::Variable { name, changed, .. } => Piece::Variable { name, changed, quoted: true },
        Piece::Output { script, .. } => Piece::Output { script, quoted: true },
        other @ (Piece::Quoted(_) | Piece::Process(_) | Piece::Number) => other,
    }
}

/// `~` is somebody's home directory where a word begins, and behind `=` and `:`.
fn check_tilde(word: &Word) -> Result<(), String> {
    let mut before = None;
    for piece in &word.pieces {
        let Piece::Bare(text) = piece else {
            before = Some(' ');
            continue;
        };
        for c in text.chars() {
            if c == '~' && matches!(before, None | Some('=' | ':')) {
                return Err("`~` is a directory outside the working directory".to_owned());
            }
            before = Some(c);
        }
    }
    Ok(())
}

/// Beside a `$` that stands for itself, bash does not split values as it does elsewhere.
fn check_dollar(word: &Word) -> Result<(), String> {
    let itself = |piece: &Piece| matches!(piece, Piece::Quoted(text) if text == "$");
    let splits = |piece: &Piece| {
        matches!(piece, Piece::Variable { quoted: false, .. } | Piece::Output { quoted: false, .. })
    };
    match word.pieces.iter().any(itself) && word.pieces.iter().any(splits) {
        true => Err("a `$` beside a value that may be split".to_owned()),
        false => Ok(()),
    }
}

/// Puts words together, split where a variable without quotation marks splits them.
fn drafts(
    word: &Word,
    state: &State,
    look: &Look<'_>,
    inner: &mut dyn FnMut(&List) -> Result<Stream, String>,
) -> Result<Vec<Draft>, String> {
    check_tilde(word)?;
    check_dollar(word)?;
    let alone = word.pieces.iter().filter(|piece| !is_empty(piece)).count() == 1;
    let mut done = Vec::new();
    let mut open = Draft::default();
    for piece in &word.pieces {
        // Values in values grow fast.
        if open.signs.len() > SCRIPT_BYTES_MAX || done.len() > WORDS_MAX {
            return Err("a word that becomes too long".to_owned());
        }
        match piece {
            Piece::Quoted(text) => open.push_quoted(text),
            Piece::Bare(text) => open.push(text, true),
            Piece::Number => {
                open.quoted = true;
                open.is_unknown(Kind::Unknown);
            }
            Piece::Process(script) => {
                inner(script)?;
                open.unknown = Some(Kind::Pipe);
            }
            Piece::Output { script, quoted } if is_pwd(script) => {
                let cwd = state.cwd.display().to_string();
                match quoted {
                    true => open.push_quoted(&cwd),
                    false => split(&cwd, &mut open, &mut done),
                }
            }
            Piece::Output { script, quoted } => {
                let found = match (inner(script)?, quoted) {
                    (Stream::Names(names), false) if alone => look.found(&state.cwd, &names).ok(),
                    _ => None,
                };
                open.quoted |= *quoted;
                open.is_unknown(match (found, quoted) {
                    (Some(found), _) => Kind::Found(found),
                    (None, true) => Kind::Unknown,
                    (None, false) => Kind::AnyWords,
                });
            }
            Piece::Variable { name, changed, quoted } => {
                open.quoted |= *quoted;
                match (value(name, *changed, state)?, *quoted) {
                    (Value::Is(text), true) => open.push(&text, false),
                    (Value::Is(text), false) => split(&text, &mut open, &mut done),
                    (Value::Found(found), _) if alone && found.cwd == state.cwd => {
                        open.is_unknown(Kind::Found(found));
                    }
                    // No blank and no pattern is in such a name.
                    (Value::Found(_), _) => open.is_unknown(Kind::Unknown),
                    (Value::Unknown, _) if matches!(name.as_str(), "@" | "*") => {
                        open.is_unknown(Kind::AnyWords);
                    }
                    (Value::Unknown, quoted) if quoted || NUMBERS.contains(&name.as_str()) => {
                        open.quoted = true;
                        open.is_unknown(Kind::Unknown);
                    }
                    (Value::Unknown, _) => open.is_unknown(Kind::AnyWords),
                }
            }
        }
    }
    done.push(open);
    Ok(done)
}

/// Nothing between two quotation marks, as on both sides of the variable in `"$x"`.
fn is_empty(piece: &Piece) -> bool {
    matches!(piece, Piece::Quoted(text) if text.is_empty())
}

fn value(name: &str, changed: bool, state: &State) -> Result<Value, String> {
    let known = match state.value(name) {
        Some(value) => value.clone(),
        None if name == "PWD" => Value::Is(state.cwd.display().to_string()),
        None if matches!(name, "@" | "*" | "!" | "-" | "_") => {
            return Err(format!("nobody knows here what is in `${name}`"));
        }
        None if SECRETS.iter().any(|part| name.to_uppercase().contains(part)) => {
            return Err(format!("`${}` may hold a secret", brief(name)));
        }
        None => Value::Unknown,
    };
    Ok(if changed { Value::Unknown } else { known })
}

/// Splits at blanks, as bash does with a value that is not quoted.
fn split(text: &str, open: &mut Draft, done: &mut Vec<Draft>) {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n');
    if text.starts_with(blank) && !open.is_nothing() {
        done.push(std::mem::take(open));
    }
    let mut parts = text.split(blank).filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        open.push(part, true);
        if parts.peek().is_some() || text.ends_with(blank) {
            done.push(std::mem::take(open));
        }
    }
}

/// `$(pwd)`, which says what is known.
fn is_pwd(script: &List) -> bool {
    let [(_, pipeline)] = script.items.as_slice() else { return false };
    let [Command { body: Body::Simple(simple), redirects }] = pipeline.commands.as_slice() else {
        return false;
    };
    let [word] = simple.words.as_slice() else { return false };
    redirects.is_empty() && simple.assignments.is_empty() && word.bare() == Some("pwd")
}

impl Draft {
    fn push_quoted(&mut self, text: &str) {
        self.quoted = true;
        self.push(text, false);
    }

    fn push(&mut self, text: &str, bare: bool) {
        if self.unknown.is_none() {
            self.signs.extend(text.chars().map(|c| Sign { c, bare }));
        } else if bare && text.contains(['*', '?', '[']) {
            // Behind something unknown text says nothing more, but a pattern may become many words.
            self.is_unknown(Kind::AnyWords);
        }
    }

    fn is_unknown(&mut self, kind: Kind) {
        if self.unknown.as_ref().is_none_or(|old| *old == Kind::Unknown) {
            self.unknown = Some(kind);
        }
    }

    fn is_nothing(&self) -> bool {
        self.signs.is_empty() && !self.quoted && self.unknown.is_none()
    }

    fn text(&self) -> String {
        self.signs.iter().map(|sign| sign.c).collect()
    }

    fn arg(&self) -> Arg {
        Arg { text: self.text(), kind: self.unknown.clone().unwrap_or(Kind::Literal) }
    }
}

fn finish(draft: Draft, state: &State, look: &Look<'_>, args: &mut Vec<Arg>) -> Result<(), String> {
    if draft.is_nothing() {
        return Ok(());
    }
    let pattern = draft.signs.iter().any(|sign| sign.bare && matches!(sign.c, '*' | '?' | '['));
    match (pattern, &draft.unknown) {
        (false, _) => args.push(draft.arg()),
        (true, Some(_)) => {
            return Err("a pattern with something unknown in it".to_owned());
        }
        (true, None) if draft.signs.iter().any(|sign| sign.bare && sign.c == '\\') => {
            return Err("a pattern with a backslash in it".to_owned());
        }
        (true, None) => {
            let names = glob::expand(&draft.signs, state, look)?;
            if names.is_empty() {
                args.push(draft.arg());
            }
            args.extend(names.into_iter().map(|text| Arg { text, kind: Kind::Matched }));
        }
    }
    Ok(())
}
