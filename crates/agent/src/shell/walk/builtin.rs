//! Simple commands, and those that change the shell itself.

use std::rc::Rc;

use super::super::expand::{Arg, Kind, Value};
use super::super::grammar::{Simple, Word};
use super::super::rules;
use super::super::show::brief;
use super::flow::is_written_out;
use super::{Ends, State, States, Stream, Walk, union};

/// Settings that a command may get, and their values. None of them names a file or a program.
const HARMLESS_SETTINGS: &[(&str, &str)] = &[
    ("CLICOLOR", "0 1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("LANG", "C C.UTF-8 POSIX en_US.UTF-8"),
    ("LC_ALL", "C C.UTF-8 POSIX en_US.UTF-8"),
    ("LC_COLLATE", "C C.UTF-8 POSIX en_US.UTF-8"),
    ("LC_CTYPE", "C C.UTF-8 POSIX en_US.UTF-8"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb xterm"),
    ("TZ", "UTC UTC0 GMT"),
];

/// Variables that neither bash nor a program that it starts looks at: the environment of commands
/// has no such names, so a value stays in the shell.
pub(super) fn is_own_variable(name: &str) -> bool {
    let lower = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let letter = name.len() == 1 && name.bytes().all(|b| b.is_ascii_uppercase());
    (lower && !["auto_resume", "histchars"].contains(&name)) || letter
}

pub(in super::super) fn is_harmless_setting(name: &str, value: &str) -> bool {
    HARMLESS_SETTINGS
        .iter()
        .any(|(known, values)| *known == name && values.split(' ').any(|known| known == value))
}

impl Walk<'_> {
    pub(super) fn simple(
        &self,
        simple: &Simple,
        from: &States,
        stdin: &Stream,
    ) -> Result<(Ends, Stream), String> {
        let mut all: Option<(Ends, Stream)> = None;
        for state in from {
            let (ends, stream) = self.simple_in(simple, state, stdin)?;
            all = Some(match all {
                None => (ends, stream),
                Some((old, before)) => {
                    let certain = old.certain && ends.certain;
                    let yes = union(&old.yes, &ends.yes)?;
                    let ends = Ends { yes, no: union(&old.no, &ends.no)?, certain };
                    (ends, if stream == before { stream } else { Stream::Data })
                }
            });
        }
        all.ok_or_else(|| "it cannot be reached".to_owned())
    }

    fn simple_in(
        &self,
        simple: &Simple,
        state: &Rc<State>,
        stdin: &Stream,
    ) -> Result<(Ends, Stream), String> {
        let Some(first) = simple.words.first() else {
            let state = self.assign(simple, state)?;
            return Ok((Ends::both(vec![state]), Stream::Data));
        };
        if !is_written_out(first) {
            return Err("which program runs is not written out".to_owned());
        }
        let args = self.arguments(&simple.words, state)?;
        let program = args.first().and_then(Arg::exact).unwrap_or_default().to_owned();
        self.check_settings(simple, &program, state)?;
        let rest = args.get(1..).unwrap_or_default();
        let stay = || Ends::both(vec![state.clone()]);
        let ends = match program.as_str() {
            "cd" => self.cd(rest, state)?,
            "read" => Ends::both(vec![self.read(rest, state, stdin)?]),
            "set" => check_set(rest).map(|()| stay())?,
            "exit" | "return" | "break" | "continue" | ":" => {
                let fits = rest.iter().all(|arg| arg.kind != Kind::Pipe);
                if !fits {
                    return Err(format!("`{program}` with a pipe"));
                }
                stay()
            }
            _ => {
                let stream = rules::check_command(self, state, &args, stdin)?;
                return Ok((stay(), stream));
            }
        };
        Ok((ends, Stream::Data))
    }

    pub(super) fn assign(&self, simple: &Simple, state: &Rc<State>) -> Result<Rc<State>, String> {
        let mut after = State::clone(state);
        for (name, word) in &simple.assignments {
            if !is_own_variable(name) {
                return Err(format!("sets `{}`, which may mean something", brief(name)));
            }
            let arg = self.single(word, &Rc::new(after.clone()))?;
            let value = match arg.kind {
                Kind::Literal => Value::Is(arg.text),
                Kind::Found(found) => Value::Found(found),
                Kind::Unknown | Kind::AnyWords => Value::Unknown,
                Kind::Pipe | Kind::Matched => {
                    return Err("a variable with something unknown".to_owned());
                }
            };
            after = after.with(name, value);
        }
        Ok(Rc::new(after))
    }

    /// `NAME=value` before a command goes into its environment.
    fn check_settings(
        &self,
        simple: &Simple,
        program: &str,
        state: &Rc<State>,
    ) -> Result<(), String> {
        for (name, word) in &simple.assignments {
            let arg = self.single(word, state)?;
            let value = arg.exact().unwrap_or("$");
            let splits = program == "read" && name == "IFS";
            if !splits && !is_harmless_setting(name, value) {
                return Err(format!("sets `{}` for `{}`", brief(name), brief(program)));
            }
        }
        Ok(())
    }

    fn cd(&self, args: &[Arg], state: &Rc<State>) -> Result<Ends, String> {
        let target = match args {
            [target] => target.exact(),
            [end, target] if end.exact() == Some("--") => target.exact(),
            _ => None,
        };
        let there = match (target, &state.before) {
            (Some("-"), Some(before)) => before.clone(),
            (Some("-"), None) | (None, _) => {
                return Err("`cd` leads out of the working directory, or is not clear".to_owned());
            }
            (Some(target), _) => self.look.directory(&state.cwd, target)?,
        };
        // Through the directory itself, so that it must be one that can be entered.
        let certain = there.join(".").metadata().is_ok();
        let before = Some(state.cwd.clone());
        let moved = Rc::new(State { cwd: there, before, ..State::clone(state) });
        Ok(Ends { yes: vec![moved], no: vec![state.clone()], certain })
    }

    fn read(&self, args: &[Arg], state: &Rc<State>, stdin: &Stream) -> Result<Rc<State>, String> {
        let mut names = Vec::new();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.exact() {
                Some("-r") => {}
                Some("-d") if args.next().is_some_and(|mark| mark.exact() == Some("")) => {}
                Some(name) if is_own_variable(name) => names.push(name),
                _ => return Err(format!("`read` with `{}`", arg.shown())),
            }
        }
        let value = match (names.as_slice(), stdin) {
            ([], _) => return Err("`read` without the name of a variable".to_owned()),
            ([_], Stream::Names(found)) => match self.look.found(&state.cwd, found) {
                Ok(found) => Value::Found(found),
                Err(_) => Value::Unknown,
            },
            _ => Value::Unknown,
        };
        let with = |state: State, name: &&str| state.with(name, value.clone());
        Ok(Rc::new(names.iter().fold(State::clone(state), with)))
    }

    /// The words of `[[ … ]]`: what is in them is calculated by some operators.
    pub(super) fn conditional(&self, words: &[Word], state: &Rc<State>) -> Result<(), String> {
        const CALCULATE: &[&str] =
            &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R", "-o", "=~"];
        let mut args = Vec::new();
        for word in words {
            let arg = self.single(word, state)?;
            if arg.exact().is_some_and(|text| CALCULATE.contains(&text)) {
                return Err(format!("`[[ … {} … ]]` is not looked into", arg.shown()));
            }
            if arg.kind == Kind::Pipe {
                return Err("`[[ … <(…) ]]` is not looked into".to_owned());
            }
            args.push(arg);
        }
        rules::check_conditional(self, state, &args)
    }
}

/// Only what makes a script stop earlier, or print more.
fn check_set(args: &[Arg]) -> Result<(), String> {
    let texts: Option<Vec<&str>> = args.iter().map(Arg::exact).collect();
    let texts = texts.filter(|texts| !texts.is_empty());
    let mut texts = texts.ok_or("`set` with nothing, or with something unknown")?.into_iter();
    while let Some(text) = texts.next() {
        let letters = text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty());
        let letters = letters.filter(|letters| letters.bytes().all(|b| b"eouxE".contains(&b)));
        let Some(letters) = letters else { return Err(format!("`set {}`", brief(text))) };
        if letters.contains('o') {
            let named = letters.ends_with('o') && letters.matches('o').count() == 1;
            let name = texts.next().unwrap_or_default();
            if !named || !["pipefail", "errexit", "nounset", "xtrace"].contains(&name) {
                return Err(format!("`set -o {}`", brief(name)));
            }
        }
    }
    Ok(())
}
