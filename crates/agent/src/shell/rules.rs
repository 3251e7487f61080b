//! Which commands only read: exact names, exact options, paths that are looked up.
//!
//! The tables are in the files below, one for each family, and made to be read and added to. An
//! option that is not there is asked about; nothing is ever forbidden by a list of what is bad.
//! Left out on purpose: whatever writes, runs something, waits for ever, reaches the network,
//! or takes the names of files from a file.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use polyloop_session::shown::{is_deceptive, visible};

use super::expand::{Arg, Kind};
use super::filter::{Entry, Filter};
use super::path::Want;
use super::programs::{Class, class, listed};
use super::show::brief;
use super::walk::{Names, State, Stream, Walk};

mod archives;
mod awk;
mod data;
mod files;
mod find;
mod git;
mod options;
mod run;
mod search;
mod sed;
mod system;
mod test;
mod text;
mod versions;

use options::{Parsed, Spec};

/// One or several programs with the same words.
pub(super) struct Rule {
    /// Names with blanks between them.
    programs: &'static str,
    /// What they may get, see `options.rs` for how it is written.
    options: &'static str,
    operands: Operands,
    /// With these options directories are read with all that is below them, or `always`.
    recursive: &'static str,
    /// With these options links are followed wherever they lead, or `always`.
    follows: &'static str,
    /// With these options there is no text before the paths.
    instead: &'static str,
    /// With these options it prints the names of files…
    names: &'static str,
    /// …and nothing else, if these are the only others.
    beside: &'static str,
    /// It prints the names of the files it is given and nothing else, if these are the only
    /// options.
    echoes: &'static str,
    lines: Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    None,
    /// Only printed, or calculated with; options are words too.
    Anything,
    /// The same, but options are options.
    Words,
    /// Files whose content is shown.
    Paths,
    /// Files of which only names and kinds are shown.
    Names,
    /// At most one file; a second one would be written to.
    OnePath,
    /// A text, then files.
    TextThenPaths,
}

/// What a program does with lines that are piped into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    Changes,
    /// Prints some of them, whole, unless one of these options is given.
    Passes(&'static str),
}

const NOTHING: Rule = Rule {
    programs: "",
    options: "",
    operands: Operands::None,
    recursive: "",
    follows: "",
    instead: "",
    names: "",
    beside: "",
    echoes: "",
    lines: Lines::Changes,
};

/// One command, its program apart.
pub(super) struct Call<'c, 'w> {
    walk: &'c Walk<'w>,
    state: &'c State,
    program: &'c str,
    args: &'c [Arg],
    stdin: &'c Stream,
}

type Check = fn(&Call<'_, '_>) -> Result<Stream, String>;

/// Programs with a grammar of their own.
const OWN: &[(&str, Check)] = &[
    ("awk gawk mawk", awk::check),
    ("bash sh", run::shell),
    ("command", run::command),
    ("env", run::env),
    ("date", data::date),
    ("find", find::check),
    ("git", git::check),
    ("bunzip2 bzip2 gunzip gzip unxz unzstd xz zstd", archives::gzip),
    ("iconv", data::iconv),
    ("ip", system::ip),
    ("jq", data::jq),
    ("netstat", system::netstat),
    ("nice", run::nice),
    ("openssl", data::openssl),
    ("printenv", system::printenv),
    ("printf", data::printf),
    ("ps", system::ps),
    ("sed", sed::check),
    ("sleep", data::sleep),
    ("tar", archives::tar),
    ("test [", test::check),
    ("timeout", run::timeout),
    ("unzip", archives::unzip),
    ("xargs", run::xargs),
    ("yq", data::yq),
];

const TABLES: &[&[Rule]] =
    &[archives::RULES, data::RULES, files::RULES, search::RULES, system::RULES, text::RULES];

/// Programs that take `@file` for options, and read them from there.
const TAKE_OPTIONS_FROM_FILES: &str = "nm objdump readelf size strings";

enum Known {
    Own(Check),
    Table(&'static Rule, Spec),
}

static KNOWN: LazyLock<HashMap<&'static str, Known>> = LazyLock::new(|| {
    let mut known = HashMap::new();
    for rule in TABLES.iter().copied().flatten() {
        for program in rule.programs.split(' ') {
            known.insert(program, Known::Table(rule, Spec::of(rule.options)));
        }
    }
    for (programs, check) in OWN {
        known.extend(programs.split(' ').map(|program| (program, Known::Own(*check))));
    }
    known
});

/// Bash has these itself, so no file is looked up.
const BUILTINS: &[&str] = &[
    "[", "command", "echo", "false", "help", "printf", "pwd", "test", "true", "type", "ulimit",
    "umask",
];

/// Whether a command only reads; what comes out of it, or why it may do more.
pub(super) fn check_command(
    walk: &Walk<'_>,
    state: &State,
    argv: &[Arg],
    stdin: &Stream,
) -> Result<Stream, String> {
    check_characters(argv)?;
    let Some((first, args)) = argv.split_first() else { return Err("it is empty".to_owned()) };
    let Some(program) = first.exact() else {
        return Err("which program runs is not written out".to_owned());
    };
    if !BUILTINS.contains(&program) && walk.allows(argv) {
        return Ok(Stream::Data);
    }
    let call = Call { walk, state, program, args, stdin };
    if versions::is_asked_for(&call)? {
        return Ok(Stream::Data);
    }
    let known = KNOWN.get(program).ok_or_else(|| not_known(program))?;
    if !BUILTINS.contains(&program) {
        walk.look.program(program, || walk.look.scope.check_program(program))?;
    }
    match known {
        Known::Own(check) => check(&call),
        Known::Table(rule, spec) => call.check_rule(rule, spec),
    }
}

/// Whether `[[ … ]]` only looks at files that may be looked at.
pub(super) fn check_conditional(
    walk: &Walk<'_>,
    state: &State,
    args: &[Arg],
) -> Result<(), String> {
    let call = Call { walk, state, program: "[[", args, stdin: &Stream::Data };
    test::check_files(&call, args)
}

/// What a program does that is on no list here, as far as its name says.
fn not_known(program: &str) -> String {
    let shown = brief(program);
    match class(program) {
        Some(Class::Escalates) => format!("`{shown}` runs with more rights"),
        Some(Class::Leaves) => format!("`{shown}` reaches other machines"),
        Some(Class::System) => format!("`{shown}` changes the machine itself"),
        Some(Class::Deletes) => format!("`{shown}` deletes files"),
        Some(Class::Overwrites) => format!("`{shown}` changes files"),
        Some(Class::Rights) => format!("`{shown}` changes who may do what"),
        Some(Class::Kills) => format!("`{shown}` ends processes"),
        Some(Class::Runs | Class::Wraps) => format!("`{shown}` runs what it is given, or finds"),
        Some(Class::Reads) | None => {
            format!("`{shown}` is not on the list of commands known to be harmless")
        }
    }
}

/// A safe command is shown to nobody before it runs, but its words are in every history.
fn check_characters(argv: &[Arg]) -> Result<(), String> {
    match argv.iter().flat_map(|arg| arg.text.chars()).find(|c| is_deceptive(*c)) {
        Some(c) => {
            let code = visible(&c.to_string());
            Err(format!("it holds {code}, a character that cannot be seen for what it is"))
        }
        None => Ok(()),
    }
}

impl Call<'_, '_> {
    fn not_listed(&self, arg: &Arg) -> String {
        format!("`{}` with `{}` is not on the list", self.program, arg.shown())
    }

    fn with_args(&self, args: &[Arg]) -> Result<Stream, String> {
        check_command(self.walk, self.state, args, self.stdin)
    }

    fn check_rule(&self, rule: &Rule, spec: &Spec) -> Result<Stream, String> {
        if rule.operands == Operands::Anything {
            return Ok(Stream::Data);
        }
        let parsed = spec.parse(self, self.args)?;
        self.check_parsed(rule, &parsed)
    }

    fn check_parsed(&self, rule: &Rule, parsed: &Parsed) -> Result<Stream, String> {
        let mut operands = parsed.operands.as_slice();
        let given = |options: &str| options == "always" || parsed.has_any(options);
        let want = match given(rule.recursive) {
            true => Want::Tree,
            false if rule.operands == Operands::Names => Want::Name,
            false => Want::Content,
        };
        match rule.operands {
            Operands::None => {
                return match operands.first() {
                    Some(arg) => Err(self.not_listed(arg)),
                    None => Ok(Stream::Data),
                };
            }
            Operands::Anything | Operands::Words => return Ok(Stream::Data),
            // Some take an option behind a file for the name of the second.
            Operands::OnePath
                if parsed.mixed
                    || operands.len() > 1
                    || operands.iter().any(|arg| !arg.is_single()) =>
            {
                return Err(format!("`{}` with a second file writes to it", self.program));
            }
            Operands::TextThenPaths if !parsed.has_any(rule.instead) => {
                operands = operands.get(1..).unwrap_or_default();
            }
            Operands::TextThenPaths | Operands::OnePath | Operands::Paths | Operands::Names => {}
        }
        self.check_paths(operands, want)?;
        if want == Want::Tree && operands.is_empty() {
            self.path(&Arg::literal("."), want)?;
        }
        if given(rule.follows) {
            self.check_links(operands)?;
        }
        if parsed.has_any(rule.names) && parsed.has_only(rule.names, rule.beside) {
            let roots =
                if operands.is_empty() { vec![Arg::literal(".")] } else { operands.to_vec() };
            // A link is passed over where links are not followed, unless it was named.
            let filter = match want == Want::Tree && !given(rule.follows) {
                true => Filter::Is(Entry::File),
                false => Filter::Any,
            };
            return Ok(Stream::Names(Rc::new(self.names(roots, filter))));
        }
        if !rule.echoes.is_empty() && self.echoes(rule, parsed) {
            return Ok(Stream::Names(Rc::new(self.names(operands.to_vec(), Filter::Any))));
        }
        let whole = matches!(rule.lines, Lines::Passes(unless) if !parsed.has_any(unless));
        let passes = whole && operands.is_empty() && want != Want::Tree;
        Ok(if passes { self.stdin.clone() } else { Stream::Data })
    }

    /// Whether the names of the operands are what it prints; of a directory it would print those
    /// of what is in it.
    fn echoes(&self, rule: &Rule, parsed: &Parsed) -> bool {
        let alone = |arg: &Arg| match arg.kind {
            Kind::Literal | Kind::Matched => {
                parsed.has_any("-d") || !self.state.cwd.join(&arg.text).is_dir()
            }
            Kind::Unknown | Kind::AnyWords | Kind::Pipe | Kind::Found(_) => false,
        };
        !parsed.operands.is_empty()
            && parsed.has_only(rule.echoes, "")
            && parsed.operands.iter().all(alone)
    }

    /// Names of these paths, or of what is below them.
    fn names(&self, roots: Vec<Arg>, filter: Filter) -> Names {
        Names { cwd: self.state.cwd.clone(), roots, filter }
    }

    fn check_paths(&self, operands: &[Arg], want: Want) -> Result<(), String> {
        operands.iter().try_for_each(|arg| self.path(arg, want))
    }

    /// Whether this argument is something that may be looked at.
    fn path(&self, arg: &Arg, want: Want) -> Result<(), String> {
        self.walk.reads();
        match &arg.kind {
            // `-` is standard input.
            Kind::Literal if arg.text == "-" => Ok(()),
            // An option, as it was written once: `tail +5f` waits for more.
            Kind::Literal if arg.text.starts_with('+') => Err(self.not_listed(arg)),
            Kind::Literal | Kind::Matched | Kind::Found(_)
                if listed(TAKE_OPTIONS_FROM_FILES, self.program)
                    && (arg.text.is_empty() || arg.text.starts_with('@')) =>
            {
                Err(format!("`{}` may take a name for options", self.program))
            }
            Kind::Literal | Kind::Matched => self.walk.look.path(&self.state.cwd, &arg.text, want),
            Kind::Pipe => Ok(()),
            Kind::Found(found) => match &found.secret {
                Some(name) if want != Want::Name => {
                    Err(format!("`{}` is among the files, and may hold secrets", brief(name)))
                }
                _ => Ok(()),
            },
            Kind::Unknown | Kind::AnyWords => {
                Err(format!("which file `{}` reads is not known yet", self.program))
            }
        }
    }

    /// Where links are followed, none may lead out.
    fn check_links(&self, operands: &[Arg]) -> Result<(), String> {
        let here = [Arg::literal(".")];
        let operands = if operands.is_empty() { &here } else { operands };
        for arg in operands {
            let operand = match arg.kind {
                Kind::Literal | Kind::Matched => &arg.text,
                // Among found names no link leads out.
                Kind::Pipe | Kind::Found(_) => continue,
                Kind::Unknown | Kind::AnyWords => {
                    return Err(format!("`{}` follows links", self.program));
                }
            };
            let tree = self.walk.look.tree(&self.state.cwd, operand)?;
            if let Some(link) = &tree.leads_out {
                return Err(format!("`{}` follows links, and `{link}` leads out", self.program));
            }
        }
        Ok(())
    }

    /// What `xargs` and `find -exec` hand on.
    fn found(&self, names: &Names) -> Result<Arg, String> {
        let found = self.walk.look.found(&self.state.cwd, names)?;
        Ok(Arg { text: String::new(), kind: Kind::Found(found) })
    }
}
