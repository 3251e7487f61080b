//! `find`: tests, and actions that print. `-exec` runs what is judged itself.
//!
//! Left out: `-delete`, `-fprint…` and `-fls` (write), `-execdir`, `-ok`, `-okdir` (run things in
//! other places, or ask), `-files0-from`.

use std::rc::Rc;

use super::super::expand::{Arg, Kind};
use super::super::filter::{Entry, Filter};
use super::super::path::Want;
use super::super::programs::listed;
use super::super::walk::Stream;
use super::Call;

/// Tests and the like without a value.
const ALONE: &str = "-d -daystart -depth -empty -executable -false -ignore_readdir_race -mount \
    -nogroup -noleaf -nouser -nowarn -prune -quit -readable -true -warn -writable -xdev";

/// What prints, also without a value.
const ACTIONS: &str = "-ls -print -print0";

/// Those with a text or a number.
const VALUED: &str = "-amin -atime -cmin -ctime -fstype -gid -group -ilname -iname -inum -ipath \
    -iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newermt -newerat \
    -newerct -path -perm -printf -regex -regextype -size -type -uid -used -user -wholename -xtype";

/// Those with the name of a file.
const FILES: &str = "-anewer -cnewer -newer -samefile";

pub(super) fn check(call: &Call<'_, '_>) -> Result<Stream, String> {
    let is_option = |arg: &&Arg| matches!(arg.exact(), Some("-H" | "-L" | "-P"));
    let options = call.args.iter().take_while(is_option).count();
    let (options, rest) = call.args.split_at(options);
    let begins =
        |arg: &Arg| arg.text.starts_with('-') || matches!(arg.exact(), Some("!" | "(" | ")" | ","));
    let roots = rest.iter().take_while(|arg| !begins(arg)).count();
    let (roots, expression) = rest.split_at(roots);
    call.check_paths(roots, Want::Content)?;
    if roots.is_empty() {
        call.path(&Arg::literal("."), Want::Content)?;
    }
    if options.iter().any(|option| option.exact() != Some("-P")) {
        call.check_links(roots)?;
    }
    let mut roots = roots.to_vec();
    if roots.is_empty() {
        roots.push(Arg::literal("."));
    }
    let follows = options.iter().any(|option| option.exact() != Some("-P"));
    let mut reader = Reader::new(call, expression, follows);
    let filter = reader.alternatives(0)?;
    let names = call.names(roots, filter);
    for command in reader.commands {
        let found = call.found(&names)?;
        let replace = |arg: Arg| if arg.text == "{}" { found.clone() } else { arg };
        call.with_args(&command.into_iter().map(replace).collect::<Vec<_>>())?;
    }
    Ok(match reader.only_names {
        true => Stream::Names(Rc::new(names)),
        false => Stream::Data,
    })
}

/// Brackets in brackets.
const DEPTH_MAX: usize = 16;

/// Reads an expression, all of whose words must be known.
struct Reader<'c, 'w> {
    call: &'c Call<'c, 'w>,
    words: std::slice::Iter<'c, Arg>,
    /// The kind of a file is that of what a link leads to.
    follows: bool,
    /// It prints nothing but names.
    only_names: bool,
    /// What it runs.
    commands: Vec<Vec<Arg>>,
}

impl<'c, 'w> Reader<'c, 'w> {
    fn new(call: &'c Call<'c, 'w>, expression: &'c [Arg], follows: bool) -> Reader<'c, 'w> {
        let words = expression.iter();
        Reader { call, words, follows, only_names: true, commands: Vec::new() }
    }

    /// Up to the end, or past the `)` of what was opened before.
    fn alternatives(&mut self, depth: usize) -> Result<Filter, String> {
        let mut alternatives = Vec::new();
        let mut all = Vec::new();
        while let Some(arg) = self.words.next() {
            match self.known(arg)? {
                ")" if depth > 0 => {
                    alternatives.push(Filter::All(all));
                    return Ok(Filter::One(alternatives));
                }
                // What is left of a `,` is done as well as what is right of it.
                "-o" | "-or" | "," => alternatives.push(Filter::All(std::mem::take(&mut all))),
                "-a" | "-and" => {}
                _ => all.push(self.primary(arg, depth)?),
            }
        }
        if depth > 0 {
            return Err("`find` with a bracket that does not end".to_owned());
        }
        alternatives.push(Filter::All(all));
        Ok(Filter::One(alternatives))
    }

    fn known<'a>(&self, arg: &'a Arg) -> Result<&'a str, String> {
        arg.exact().ok_or_else(|| "`find` gets words that are not known yet".to_owned())
    }

    fn primary(&mut self, arg: &'c Arg, depth: usize) -> Result<Filter, String> {
        let word = self.known(arg)?;
        let not_listed = || self.call.not_listed(arg);
        if word == "!" || word == "-not" {
            let next = self.words.next().ok_or_else(not_listed)?;
            return Ok(Filter::Not(Box::new(self.primary(next, depth + 1)?)));
        }
        if depth > DEPTH_MAX {
            return Err("`find` with too many brackets".to_owned());
        }
        if word == "(" {
            return self.alternatives(depth + 1);
        }
        if word == "-exec" {
            let command = command(self.call, &mut self.words)?;
            self.commands.push(command);
            self.only_names = false;
            return Ok(Filter::Act);
        }
        if listed(ACTIONS, word) {
            self.only_names &= word != "-ls";
            return Ok(Filter::Act);
        }
        if listed(ALONE, word) {
            return Ok(Filter::Any);
        }
        let value = self.words.next().ok_or_else(not_listed)?;
        if listed(FILES, word) {
            self.call.path(value, Want::Name)?;
            return Ok(Filter::Any);
        }
        if !listed(VALUED, word) || !value.is_single() {
            return Err(not_listed());
        }
        Ok(match (word, value.exact()) {
            ("-printf", _) => {
                self.only_names = false;
                Filter::Act
            }
            ("-name", Some(pattern)) => Filter::Name(pattern.to_owned()),
            ("-iname", Some(pattern)) => Filter::AnyCaseName(pattern.to_owned()),
            ("-type", Some("f")) if !self.follows => Filter::Is(Entry::File),
            ("-type", Some("d")) if !self.follows => Filter::Is(Entry::Directory),
            _ => Filter::Any,
        })
    }
}

/// The words of `-exec` up to `;` or `+`.
fn command<'a>(
    call: &Call<'_, '_>,
    words: &mut impl Iterator<Item = &'a Arg>,
) -> Result<Vec<Arg>, String> {
    let mut command: Vec<Arg> = Vec::new();
    for word in words {
        let ended = match word.exact() {
            Some(";") => true,
            Some("+") => command.last().is_some_and(|last| last.text == "{}"),
            _ => false,
        };
        if ended {
            return Ok(command);
        }
        // Inside of a longer word names become part of something else.
        let inside = word.text.contains("{}") && word.text != "{}";
        if inside || !matches!(word.kind, Kind::Literal) {
            break;
        }
        command.push(word.clone());
    }
    Err(format!("`{}` runs a command that is not looked into", call.program))
}
