//! `find`: tests, and actions that print. `-exec` runs what is judged itself.
//!
//! Left out: `-delete`, `-fprint…` and `-fls` (write), `-execdir`, `-ok`, `-okdir` (run things in
//! other places, or ask), `-files0-from`.

use std::rc::Rc;

use super::super::expand::{Arg, Kind};
use super::super::path::Want;
use super::super::programs::listed;
use super::super::walk::{Names, Stream};
use super::Call;

/// Tests and actions without a value.
const ALONE: &str = "! ( ) , -a -and -d -daystart -depth -empty -executable -false \
    -ignore_readdir_race -ls -mount -nogroup -noleaf -not -nouser -nowarn -o -or -print -print0 \
    -prune -quit -readable -true -warn -writable -xdev";

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
    let mut names = call.names(roots.to_vec());
    if roots.is_empty() {
        names.roots.push(Arg::literal("."));
    }
    check_expression(call, expression, &mut names)
}

fn check_expression(
    call: &Call<'_, '_>,
    expression: &[Arg],
    names: &mut Names,
) -> Result<Stream, String> {
    let mut only_names = true;
    let mut simple = true;
    let mut acted = false;
    let mut commands = Vec::new();
    let mut words = expression.iter();
    while let Some(arg) = words.next() {
        let Some(word) = arg.exact() else {
            return Err("`find` gets words that are not known yet".to_owned());
        };
        if listed(ALONE, word) {
            simple &= !matches!(word, "!" | "-not" | "-o" | "-or" | ",");
            only_names &= !matches!(word, "-ls");
            acted |= matches!(word, "-print" | "-print0" | "-ls" | "-prune");
        } else if listed(VALUED, word) {
            let value = words.next().filter(|value| value.is_single());
            let value = value.ok_or_else(|| call.not_listed(arg))?;
            only_names &= word != "-printf";
            acted |= word == "-printf";
            // What comes behind an action does not narrow what it acts on.
            if let ("-name", Some(pattern), false) = (word, value.exact(), acted) {
                names.patterns.push(pattern.to_owned());
            }
        } else if listed(FILES, word) {
            let file = words.next().ok_or_else(|| call.not_listed(arg))?;
            call.path(file, Want::Name)?;
        } else if word == "-exec" {
            commands.push(command(call, &mut words)?);
            only_names = false;
            acted = true;
        } else {
            return Err(call.not_listed(arg));
        }
    }
    if !simple {
        names.patterns.clear();
    }
    for command in commands {
        let found = call.found(names)?;
        let replace = |arg: Arg| if arg.text == "{}" { found.clone() } else { arg };
        call.with_args(&command.into_iter().map(replace).collect::<Vec<_>>())?;
    }
    Ok(match only_names {
        true => Stream::Names(Rc::new(names.clone())),
        false => Stream::Data,
    })
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
