//! Goes through a script as bash would, and asks about each command whether it only reads.
//!
//! Never runs anything. Where bash could take two ways it takes both; what it cannot follow is an
//! error, and the script is asked about.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Scope;
use super::expand::{self, Arg, Value};
use super::filter::Filter;
use super::grammar::{Body, Command, Joint, List, Pipeline, Redirect, Word};
use super::look::Look;
use super::path::Want;
use super::read::{self, Dialect};

mod builtin;
mod flow;

pub(super) use builtin::is_harmless_setting;

/// Commands that are gone through for one judgement, those of loops each time.
const COMMANDS_MAX: usize = 10_000;

/// Ways a script may have taken, as far as they are told apart.
const STATES_MAX: usize = 8;

/// Scripts inside of scripts (`bash -c`).
const SCRIPTS_MAX: usize = 4;

/// What one command leaves for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) cwd: PathBuf,
    /// Where `cd -` leads, if the script itself came from there.
    before: Option<PathBuf>,
    variables: Rc<BTreeMap<String, Value>>,
}

impl State {
    pub(super) fn at(cwd: &Path) -> State {
        State { cwd: cwd.to_owned(), before: None, variables: Rc::default() }
    }

    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn with(&self, name: &str, value: Value) -> State {
        let mut state = self.clone();
        Rc::make_mut(&mut state.variables).insert(name.to_owned(), value);
        state
    }
}

/// Every way in which a shell may be left, each once.
type States = Vec<Rc<State>>;

/// How a command may leave the shell: when it succeeds, and when it does not.
#[derive(Clone, Debug)]
struct Ends {
    yes: States,
    no: States,
    /// It succeeds; what follows a failure is judged all the same.
    certain: bool,
}

impl Ends {
    fn new(yes: States, no: States) -> Ends {
        Ends { yes, no, certain: false }
    }

    fn both(states: States) -> Ends {
        Ends::new(states.clone(), states)
    }

    fn any(&self) -> Result<States, String> {
        if self.certain { Ok(self.yes.clone()) } else { union(&self.yes, &self.no) }
    }
}

fn union(one: &States, other: &States) -> Result<States, String> {
    let mut all = one.clone();
    for state in other {
        if !all.iter().any(|old| Rc::ptr_eq(old, state) || old == state) {
            all.push(state.clone());
        }
    }
    match all.len() <= STATES_MAX {
        true => Ok(all),
        false => Err("it can go too many ways".to_owned()),
    }
}

/// What comes through a pipe, as far as that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Data,
    Names(Rc<Names>),
}

/// Names of files, one in each line or before each NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Where they are names of something.
    pub(super) cwd: PathBuf,
    /// The paths that they are, or that they are below of.
    pub(super) roots: Vec<Arg>,
    /// What is known of those that are printed.
    pub(super) filter: Filter,
}

/// Whether a command with these words runs although it is not harmless.
type Allows<'a> = &'a dyn Fn(&[&str]) -> bool;

pub(super) struct Walk<'a> {
    pub(super) look: Look<'a>,
    commands: Cell<usize>,
    scripts: Cell<usize>,
    reads: Cell<bool>,
    /// What runs although it is not harmless.
    allows: Option<Allows<'a>>,
}

/// What a safe script does, for people; or why it is not known to be safe.
pub(super) fn script(script: &str, scope: &Scope) -> Result<String, String> {
    let walk = Walk::new(scope);
    walk.script(script, Dialect::Bash, &Rc::new(State::at(&scope.cwd)))?;
    Ok(walk.reason())
}

/// The same, where some commands may run although they are not harmless.
pub(super) fn script_beside(
    script: &str,
    scope: &Scope,
    allows: &dyn Fn(&[&str]) -> bool,
) -> Result<(), String> {
    let walk = Walk { allows: Some(allows), ..Walk::new(scope) };
    walk.script(script, Dialect::Bash, &Rc::new(State::at(&scope.cwd)))
}

/// The words that bash gives to the last command of a script, where all of them are certain and
/// what comes before only sets variables.
pub(super) fn last_words(script: &str, scope: &Scope) -> Option<Vec<String>> {
    let walk = Walk::new(scope);
    let list = read::read(script, Dialect::Bash).ok()?;
    let mut state = Rc::new(State::at(&scope.cwd));
    let mut words = None;
    for (_, pipeline) in &list.items {
        let [Command { body: Body::Simple(simple), redirects }] = pipeline.commands.as_slice()
        else {
            return None;
        };
        if words.is_some() || pipeline.negated || !redirects.is_empty() {
            return None;
        }
        match simple.words.as_slice() {
            [] => state = walk.assign(simple, &state).ok()?,
            given => words = Some(walk.arguments(given, &state).ok()?),
        }
    }
    words?.iter().map(|arg| arg.exact().map(str::to_owned)).collect()
}

/// The same for a command whose words are known.
pub(super) fn argv(argv: &[String], scope: &Scope) -> Result<String, String> {
    let walk = Walk::new(scope);
    let args: Vec<Arg> = argv.iter().map(|word| Arg::literal(word)).collect();
    walk.look.count_words(&args)?;
    let state = State::at(&scope.cwd);
    super::rules::check_command(&walk, &state, &args, &Stream::Data)?;
    Ok(walk.reason())
}

impl<'a> Walk<'a> {
    fn new(scope: &'a Scope) -> Walk<'a> {
        Walk {
            look: Look::new(scope),
            commands: Cell::new(0),
            scripts: Cell::new(0),
            reads: Cell::new(false),
            allows: None,
        }
    }

    /// Whether a command with these words may run although it is not harmless.
    pub(super) fn allows(&self, argv: &[Arg]) -> bool {
        let exact: Option<Vec<&str>> = argv.iter().map(Arg::exact).collect();
        self.allows.zip(exact).is_some_and(|(allows, argv)| allows(&argv))
    }

    fn reason(&self) -> String {
        match self.reads.get() {
            true => "only reads, inside the working directory".to_owned(),
            false => "only prints, and changes nothing".to_owned(),
        }
    }

    pub(super) fn reads(&self) {
        self.reads.set(true);
    }

    /// Judges a script that a shell of its own would run.
    pub(super) fn script(
        &self,
        script: &str,
        dialect: Dialect,
        state: &Rc<State>,
    ) -> Result<(), String> {
        self.scripts.set(self.scripts.get() + 1);
        if self.scripts.get() > SCRIPTS_MAX {
            return Err("scripts inside of scripts".to_owned());
        }
        let list = read::read(script, dialect)?;
        self.list(&list, &vec![state.clone()], &Stream::Data).map(drop)
    }

    /// What the commands inside of a word print.
    fn output(&self, list: &List, state: &Rc<State>) -> Result<Stream, String> {
        let from = vec![state.clone()];
        match list.items.as_slice() {
            [(_, pipeline)] => self.pipeline(pipeline, &from, &Stream::Data).map(|(_, out)| out),
            _ => self.list(list, &from, &Stream::Data).map(|_| Stream::Data),
        }
    }

    fn list(&self, list: &List, from: &States, stdin: &Stream) -> Result<Ends, String> {
        let run = |pipeline, from: &States| self.pipeline(pipeline, from, stdin).map(|(e, _)| e);
        let mut ends = Ends::both(from.clone());
        let mut first = true;
        for (joint, pipeline) in &list.items {
            ends = match joint {
                _ if first => run(pipeline, from)?,
                Joint::Then => run(pipeline, &ends.any()?)?,
                Joint::And => {
                    let next = run(pipeline, &ends.yes)?;
                    match ends.certain {
                        true => next,
                        false => Ends::new(next.yes, union(&ends.no, &next.no)?),
                    }
                }
                Joint::Or => {
                    let next = run(pipeline, &ends.no)?;
                    match ends.certain {
                        true => ends,
                        false => Ends::new(union(&ends.yes, &next.yes)?, next.no),
                    }
                }
            };
            first = false;
        }
        Ok(ends)
    }

    fn pipeline(
        &self,
        pipeline: &Pipeline,
        from: &States,
        stdin: &Stream,
    ) -> Result<(Ends, Stream), String> {
        let (ends, stream) = match pipeline.commands.as_slice() {
            [command] => self.command(command, from, stdin)?,
            commands => {
                let mut stream = stdin.clone();
                for command in commands {
                    stream = self.command(command, from, &stream)?.1;
                }
                // Each of them is a shell of its own.
                (Ends::both(from.clone()), stream)
            }
        };
        Ok(match pipeline.negated {
            true => (Ends::new(ends.no, ends.yes), stream),
            false => (ends, stream),
        })
    }

    fn command(
        &self,
        command: &Command,
        from: &States,
        stdin: &Stream,
    ) -> Result<(Ends, Stream), String> {
        self.commands.set(self.commands.get() + 1);
        if self.commands.get() > COMMANDS_MAX {
            return Err("it has more commands than are looked into".to_owned());
        }
        let mut plain = stdin.clone();
        for redirect in &command.redirects {
            for state in from {
                self.redirect(redirect, state)?;
            }
            if !matches!(redirect, Redirect::Write(_)) {
                plain = Stream::Data;
            }
        }
        let (ends, stream) = match &command.body {
            Body::Simple(simple) => self.simple(simple, from, &plain)?,
            body => (self.compound(body, from, &plain)?, Stream::Data),
        };
        // With `2>&1` there is more in the pipe than names.
        let mixed = command.redirects.contains(&Redirect::Duplicate);
        Ok((ends, if mixed { Stream::Data } else { stream }))
    }

    fn redirect(&self, redirect: &Redirect, state: &Rc<State>) -> Result<(), String> {
        match redirect {
            Redirect::Duplicate | Redirect::Text(None) => Ok(()),
            Redirect::Text(Some(word)) => self.single(word, state).map(drop),
            Redirect::Read(word) => {
                let file = self.target(word, state)?;
                match &file.kind {
                    expand::Kind::Pipe => Ok(()),
                    // One name: several would be an error of bash.
                    expand::Kind::Found(found) if found.secret.is_none() => {
                        self.reads();
                        Ok(())
                    }
                    _ => {
                        self.reads();
                        let file = file.exact().ok_or("it reads a file that is not known yet")?;
                        self.look.path(&state.cwd, file, Want::Content)
                    }
                }
            }
            Redirect::Write(word) => {
                let file = self.target(word, state)?;
                match file.exact() {
                    Some("/dev/null" | "/dev/stdout" | "/dev/stderr") => Ok(()),
                    _ => Err(format!("writes to the file `{}`", file.shown())),
                }
            }
        }
    }

    /// Where a redirection leads: unlike elsewhere, a pattern means something.
    fn target(&self, word: &Word, state: &Rc<State>) -> Result<Arg, String> {
        let args = self.arguments(std::slice::from_ref(word), state)?;
        match <[Arg; 1]>::try_from(args) {
            Ok([arg]) if arg.is_single() || matches!(arg.kind, expand::Kind::Found(_)) => Ok(arg),
            _ => Err("a redirection that leads to several files, or to none".to_owned()),
        }
    }

    fn arguments(&self, words: &[Word], state: &Rc<State>) -> Result<Vec<Arg>, String> {
        let mut inner = |list: &List| self.output(list, state);
        expand::arguments(words, state, &self.look, &mut inner)
    }

    fn single(&self, word: &Word, state: &Rc<State>) -> Result<Arg, String> {
        let mut inner = |list: &List| self.output(list, state);
        expand::single(word, state, &self.look, &mut inner)
    }
}
