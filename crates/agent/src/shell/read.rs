//! Reads a script by the grammar of bash, or says where it stops understanding.
//!
//! Accepts less than bash does, and nothing that bash reads in another way. Recursion is bounded
//! by [`DEPTH_MAX`], work by the length of the script: no input makes it slow or deep.

use polyloop_session::shown::{is_deceptive, visible};

use super::grammar::{Body, Command, Joint, List, Pipeline, Redirect, Simple, Word};
use super::show::brief;

mod compound;
mod word;

/// How deep commands may stand inside of commands.
const DEPTH_MAX: usize = 16;

/// Whose grammar counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    /// Some `sh`: what only bash understands is not read.
    Posix,
}

/// Begins or ends a part of the grammar when it stands first and bare.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "select", "then", "time", "until", "while", "{", "}",
];

pub(super) fn read(script: &str, dialect: Dialect) -> Result<List, String> {
    if let Some(c) = script.chars().find(|c| is_deceptive(*c)) {
        let code = visible(&c.to_string());
        return Err(format!("it holds {code}, a character that cannot be seen for what it is"));
    }
    let mut reader = Reader { text: script, at: 0, dialect, depth: 0, inside: 0, docs: Vec::new() };
    let list = reader.list(&[])?;
    match reader.peek() {
        None if reader.docs.is_empty() => Ok(list),
        None => Err("a here-document is not closed".to_owned()),
        Some(_) => Err(reader.odd()),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
    depth: usize,
    /// How many `$(` are open.
    inside: usize,
    /// Here-documents whose text begins after this line.
    docs: Vec<Doc>,
}

struct Doc {
    end: String,
    strip_tabs: bool,
    literal: bool,
}

/// What separates words without belonging to one.
fn is_meta(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>')
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn starts(&self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    fn eat(&mut self, token: &str) -> bool {
        let eaten = self.starts(token);
        if eaten {
            self.at += token.len();
        }
        eaten
    }

    fn odd(&self) -> String {
        match self.peek() {
            None => "the script ends too early".to_owned(),
            Some(_) => {
                let start: String = self.rest().chars().take(20).collect();
                format!("not understood from `{}` on", brief(&start))
            }
        }
    }

    /// Past blanks, comments and joined lines. In `$(…)` a comment stays: not every bash finds
    /// the same end then.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.starts("\\\n") => self.at += 2,
                Some('#') if self.inside == 0 => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len())
                }
                _ => return,
            }
        }
    }

    /// The same and past line ends; the text of here-documents follows a line end.
    fn lines(&mut self) -> Result<(), String> {
        loop {
            self.blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.at += 1;
            for doc in std::mem::take(&mut self.docs) {
                self.skip_doc(&doc)?;
            }
        }
    }

    fn skip_doc(&mut self, doc: &Doc) -> Result<(), String> {
        while !self.rest().is_empty() {
            let rest = self.rest();
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            self.at = self.text.len() - after.len();
            let bare = if doc.strip_tabs { line.trim_start_matches('\t') } else { line };
            if bare == doc.end {
                return Ok(());
            }
            if !doc.literal && line.contains(['$', '`', '\\']) {
                return Err("a here-document in which something is expanded".to_owned());
            }
        }
        Err("a here-document is not closed".to_owned())
    }

    /// The bare characters here up to the end of the word, if there is nothing else in it.
    fn bare(&self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| is_meta(c) || matches!(c, '\'' | '"' | '\\' | '$' | '`'))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let ended = after.chars().next().is_none_or(is_meta);
        (ended && !word.is_empty()).then_some(word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let there = self.bare() == Some(word);
        if there {
            self.at += word.len();
        }
        there
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.eat_word(word) { Ok(()) } else { Err(self.odd()) }
    }

    /// Pipelines up to one of the words `ends`, a `)` or the end.
    fn list(&mut self, ends: &[&str]) -> Result<List, String> {
        let mut list = List::default();
        let mut joint = Joint::Then;
        loop {
            self.lines()?;
            let at_end = match self.bare() {
                None => matches!(self.peek(), None | Some(')')),
                Some(word) => ends.contains(&word),
            };
            if at_end {
                break;
            }
            list.items.push((joint, self.pipeline()?));
            self.blanks();
            joint = if self.eat("&&") {
                Joint::And
            } else if self.eat("||") {
                Joint::Or
            } else if self.eat(";") {
                if matches!(self.peek(), Some(';' | '&')) {
                    return Err(self.odd());
                }
                Joint::Then
            } else {
                match self.peek() {
                    Some('\n') => Joint::Then,
                    None | Some(')') => return Ok(list),
                    Some('&') => return Err("runs something in the background".to_owned()),
                    Some(_) => return Err(self.odd()),
                }
            };
        }
        match (list.items.is_empty(), joint) {
            (false, Joint::Then) => Ok(list),
            (true, _) if self.peek().is_none() => Err("the script is empty".to_owned()),
            _ => Err(self.odd()),
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, String> {
        let mut pipeline = Pipeline { negated: false, commands: Vec::new() };
        loop {
            self.blanks();
            match self.bare() {
                Some("!") if self.starts("! ") => {
                    self.at += 1;
                    pipeline.negated = !pipeline.negated;
                }
                Some("time") if self.dialect == Dialect::Bash => {
                    self.at += "time".len();
                    self.blanks();
                    self.eat_word("-p");
                }
                _ => break,
            }
        }
        loop {
            pipeline.commands.push(self.command()?);
            self.blanks();
            if self.starts("||") || !self.starts("|") {
                return Ok(pipeline);
            }
            self.at += 1;
            if self.eat("&") {
                self.only_bash("|&")?;
            }
            self.lines()?;
        }
    }

    fn only_bash(&self, what: &str) -> Result<(), String> {
        match self.dialect {
            Dialect::Bash => Ok(()),
            Dialect::Posix => Err(format!("`sh` may read `{what}` in another way")),
        }
    }

    /// One level deeper.
    fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("nested more than {DEPTH_MAX} deep"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn command(&mut self) -> Result<Command, String> {
        self.blanks();
        self.deeper(|reader| match reader.compound()? {
            Some(body) => {
                let mut redirects = Vec::new();
                reader.blanks();
                while let Some(redirect) = reader.redirect()? {
                    redirects.push(redirect);
                    reader.blanks();
                }
                Ok(Command { body, redirects })
            }
            None => reader.simple(),
        })
    }

    fn simple(&mut self) -> Result<Command, String> {
        if self.bare().is_some_and(|word| RESERVED.contains(&word)) {
            return Err(self.odd());
        }
        let mut simple = Simple::default();
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if !self.at_word() {
                break;
            }
            let word = self.word()?;
            match assignment(&word) {
                Some(assignment) if simple.words.is_empty() => simple.assignments.push(assignment),
                _ => simple.words.push(word),
            }
        }
        if simple == Simple::default() && redirects.is_empty() {
            return Err(self.odd());
        }
        Ok(Command { body: Body::Simple(simple), redirects })
    }

    fn at_word(&self) -> bool {
        self.starts("<(") || self.peek().is_some_and(|c| !is_meta(c))
    }

    /// A redirection, if one begins here.
    fn redirect(&mut self) -> Result<Option<Redirect>, String> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, operator) = rest.split_at(digits);
        if operator.starts_with("<(") && number.is_empty() {
            return Ok(None);
        }
        if number.is_empty() && self.eat("&>") {
            self.only_bash("&>")?;
            self.eat(">");
            return Ok(Some(Redirect::Write(self.target()?)));
        }
        if !operator.starts_with(['<', '>']) {
            return Ok(None);
        }
        self.at += digits;
        if self.eat("<<<") {
            self.only_bash("<<<")?;
            return Ok(Some(Redirect::Text(Some(self.target()?))));
        }
        if self.eat("<<") {
            return self.here_document().map(Some);
        }
        if self.starts("<>") || self.starts(">(") {
            return Err(self.odd());
        }
        if self.eat("<&") || self.eat(">&") {
            return self.duplicate(number.is_empty()).map(Some);
        }
        if self.eat("<") {
            return Ok(Some(Redirect::Read(self.target()?)));
        }
        self.at += 1;
        let _ = self.eat(">") || self.eat("|");
        Ok(Some(Redirect::Write(self.target()?)))
    }

    fn target(&mut self) -> Result<Word, String> {
        self.blanks();
        if self.at_word() { self.word() } else { Err(self.odd()) }
    }

    fn duplicate(&mut self, unnumbered: bool) -> Result<Redirect, String> {
        let target = self.target()?;
        let plain = target.bare().unwrap_or_default();
        let number = !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit());
        match (number || plain == "-", unnumbered) {
            (true, _) => Ok(Redirect::Duplicate),
            (false, true) if self.dialect == Dialect::Bash => Ok(Redirect::Write(target)),
            (false, _) => Err("a descriptor is duplicated that is no number".to_owned()),
        }
    }
}

/// `name=value`, if the word begins so, without quotation marks up to the value.
fn assignment(word: &Word) -> Option<(String, Word)> {
    use super::grammar::Piece;
    let (first, rest) = word.pieces.split_first()?;
    let Piece::Bare(text) = first else { return None };
    let (name, value) = text.split_once('=')?;
    if !is_name(name) {
        return None;
    }
    let mut pieces = Vec::new();
    if !value.is_empty() {
        pieces.push(Piece::Bare(value.to_owned()));
    }
    pieces.extend(rest.iter().cloned());
    Some((name.to_owned(), Word { pieces }))
}

/// What can be the name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
