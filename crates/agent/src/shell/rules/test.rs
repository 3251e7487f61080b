//! `test` and `[`: what is there, and how texts and numbers compare. Whether a file is there that
//! may not be looked at is told to nobody unasked.
//!
//! Left out: `-v` and `-R`, which calculate what is in brackets.

use super::super::expand::Arg;
use super::super::programs::listed;
use super::super::walk::Stream;
use super::{Call, Want};

const UNARY: &str = "-b -c -d -e -f -g -G -h -k -L -n -N -O -p -r -s -S -t -u -w -x -z";
const BINARY: &str = "= == != < > -ef -eq -ge -gt -le -lt -ne -nt -ot";
/// Of those, the ones that look at files.
const OF_FILE: &str = "-b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x";
const OF_FILES: &str = "-ef -nt -ot";
const BETWEEN: &str = "! ( ) -a -o";

pub(super) fn check(call: &Call<'_, '_>) -> Result<Stream, String> {
    let args = match (call.program, call.args) {
        ("[", [inner @ .., end]) if end.exact() == Some("]") => inner,
        ("[", _) => return Err("`[` without `]`".to_owned()),
        (_, args) => args,
    };
    if !args.iter().all(Arg::is_single) {
        return Err(format!("`{}` gets words that are not known yet", call.program));
    }
    if args.iter().any(|arg| arg.exact().is_none()) && !has_certain_shape(args) {
        return Err(format!("`{}` with words that are not known yet", call.program));
    }
    let operator = |arg: &Arg| {
        let text = arg.exact().unwrap_or_default();
        !text.starts_with('-')
            || [UNARY, BINARY, BETWEEN].iter().any(|list| listed(list, text))
            || text.get(1..).is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    };
    match args.iter().find(|arg| !operator(arg)) {
        Some(arg) => Err(call.not_listed(arg)),
        None => check_files(call, args).map(|()| Stream::Data),
    }
}

/// A word that only looks like an operator makes this stricter, never laxer.
pub(super) fn check_files(call: &Call<'_, '_>, args: &[Arg]) -> Result<(), String> {
    let is = |arg: &Arg, list: &str| arg.exact().is_some_and(|text| listed(list, text));
    for (at, arg) in args.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        let after = args.get(at + 1);
        let looked_at = [
            before.filter(|_| is(arg, OF_FILES)),
            after.filter(|_| is(arg, OF_FILES)),
            after.filter(|_| is(arg, OF_FILE)),
        ];
        looked_at.into_iter().flatten().try_for_each(|file| call.path(file, Want::Name))?;
    }
    Ok(())
}

/// A word that is not known yet could be an operator, and `-v` runs what it finds in brackets. Not
/// so where the number of words leaves no choice.
fn has_certain_shape(args: &[Arg]) -> bool {
    let is = |arg: &Arg, list: &str| arg.exact().is_some_and(|text| listed(list, text));
    match args {
        [not, rest @ ..] if not.exact() == Some("!") && rest.len() < 4 => has_certain_shape(rest),
        [_] => true,
        [operator, _] => is(operator, UNARY),
        [_, operator, _] => is(operator, BINARY),
        _ => false,
    }
}
