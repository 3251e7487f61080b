//! `test` and `[`: what is there, and how texts and numbers compare.
//!
//! Left out: `-v` and `-R`, which calculate what is in brackets.

use super::super::expand::Arg;
use super::super::programs::listed;
use super::super::walk::Stream;
use super::Call;

const UNARY: &str = "-b -c -d -e -f -g -G -h -k -L -n -N -O -p -r -s -S -t -u -w -x -z";
const BINARY: &str = "= == != < > -ef -eq -ge -gt -le -lt -ne -nt -ot";
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
        None => Ok(Stream::Data),
    }
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
