//! Programs that run the command in their words: it is judged as if it stood alone.

use std::rc::Rc;
use std::sync::LazyLock;

use super::super::expand::{Arg, Kind};
use super::super::read::Dialect;
use super::super::walk::{State, Stream, is_harmless_setting};
use super::options::{Spec, is_number};
use super::{Call, check_command};

/// `bash -c script`, without start-up files and with nothing for `$1`.
pub(super) fn shell(call: &Call<'_, '_>) -> Result<Stream, String> {
    let (dialect, script) = match (call.program, call.args) {
        (_, [option, script]) if option.exact() == Some("-c") => match call.program {
            "bash" => (Dialect::Bash, script),
            _ => (Dialect::Posix, script),
        },
        _ => return Err(format!("`{}` runs what it is given", call.program)),
    };
    let script = script.exact().ok_or("a script that is not known yet")?;
    // No other shell expands braces.
    if dialect == Dialect::Posix && script.contains('{') {
        return Err("`sh` may read braces in another way".to_owned());
    }
    // Variables of this shell are not known to the other.
    let state = Rc::new(State::at(&call.state.cwd));
    call.walk.script(script, dialect, &state).map(|()| Stream::Data)
}

/// `command -v name`, or a command.
pub(super) fn command(call: &Call<'_, '_>) -> Result<Stream, String> {
    match call.args.split_first() {
        Some((option, _)) if matches!(option.exact(), Some("-v" | "-V")) => Ok(Stream::Data),
        Some((program, _)) if !program.text.starts_with('-') => inner(call, call.args),
        _ => Err("`command` with options".to_owned()),
    }
}

/// What is run this way must be a program with a rule: the shell's own commands change the shell.
fn inner(call: &Call<'_, '_>, argv: &[Arg]) -> Result<Stream, String> {
    match argv.first().map(Arg::exact) {
        Some(Some(_)) => check_command(call.walk, call.state, argv, call.stdin),
        _ => Err(format!("`{}` runs a command that is not known yet", call.program)),
    }
}

pub(super) fn env(call: &Call<'_, '_>) -> Result<Stream, String> {
    let setting = |arg: &&Arg| arg.exact().is_some_and(|text| text.contains('='));
    let settings = call.args.iter().take_while(setting).count();
    let (settings, command) = call.args.split_at(settings);
    let harmless = |arg: &Arg| {
        arg.text.split_once('=').is_some_and(|(name, value)| is_harmless_setting(name, value))
    };
    if let Some(arg) = settings.iter().find(|arg| !harmless(arg)) {
        return Err(call.not_listed(arg));
    }
    match command.first() {
        None => Err("shows variables of the environment".to_owned()),
        Some(program) if program.text.starts_with('-') => Err(call.not_listed(program)),
        Some(_) => inner(call, command),
    }
}

/// `nice ls`, `nice -n 10 ls`.
pub(super) fn nice(call: &Call<'_, '_>) -> Result<Stream, String> {
    match call.args {
        [option, number, command @ ..]
            if option.exact() == Some("-n") && number.exact().is_some_and(is_number) =>
        {
            inner(call, command)
        }
        [program, ..] if !program.text.starts_with('-') => inner(call, call.args),
        _ => Err("`nice` with options".to_owned()),
    }
}

/// `timeout 5 ls`, `timeout -k 1 5s ls`.
pub(super) fn timeout(call: &Call<'_, '_>) -> Result<Stream, String> {
    let rest = match call.args {
        [option, time, rest @ ..]
            if matches!(option.exact(), Some("-k" | "-s")) && time.exact().is_some() =>
        {
            rest
        }
        [option, rest @ ..]
            if option.exact().is_some_and(|text| {
                text.starts_with("--signal=") || text.starts_with("--kill-after=")
            }) =>
        {
            rest
        }
        args => args,
    };
    let time = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b"smhd.".contains(&b))
    };
    match rest {
        [limit, command @ ..] if limit.exact().is_some_and(time) => inner(call, command),
        _ => Err("`timeout` with options".to_owned()),
    }
}

const XARGS: &str = "-0rtx -d=\\n -I=word -L=number -n=number -P=number -s=number \
    --delimiter=\\n --max-args=number --max-chars=number --max-procs=number --no-run-if-empty \
    --null --verbose";

/// Judges the command with any of the names that come through the pipe.
pub(super) fn xargs(call: &Call<'_, '_>) -> Result<Stream, String> {
    static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec::of(XARGS));
    let (parsed, command) = SPEC.parse_leading(call, call.args)?;
    let mut command = command.to_vec();
    if command.is_empty() {
        command.push(Arg::literal("echo"));
    }
    let found = match call.stdin {
        Stream::Names(names) => call.found(names)?,
        Stream::Data => Arg { text: String::new(), kind: Kind::AnyWords },
    };
    let mut marks = parsed.values("-I");
    match (marks.next(), marks.next()) {
        (None, _) => command.push(found),
        (Some(mark), None) => {
            let mark = mark.exact().filter(|mark| !mark.is_empty()).ok_or("`xargs -I`")?;
            for arg in &mut command {
                if arg.text == mark {
                    *arg = found.clone();
                } else if let Some((before, _)) = arg.text.split_once(mark) {
                    *arg = Arg { text: before.to_owned(), kind: Kind::Unknown };
                }
            }
        }
        (Some(_), Some(_)) => return Err("`xargs` with two marks".to_owned()),
    }
    check_command(call.walk, call.state, &command, &Stream::Data)?;
    Ok(Stream::Data)
}
