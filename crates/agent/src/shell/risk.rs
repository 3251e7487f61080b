//! How bad it could be, for people to see and for grants to be bounded by.
//!
//! Low reads. Medium is ordinary work. High deletes or writes outside the working and temporary
//! directories, gets more rights, pipes into an interpreter, touches devices, rewrites published
//! history or leaves the machine.

use polyloop_session::policy::Risk;

use super::path::{Reach, reach};
use super::programs::{Class, Leaves, base, class, family, is_interpreter, listed};
use super::rough::{self, Command};
use super::show::brief;
use super::{SCRIPT_BYTES_MAX, Scope, WORDS_MAX};

/// Devices that only take or give bytes.
const HARMLESS_DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/shm",
];

/// Where `find` puts what it found.
const FOUND: &str = "{}";

/// How deep scripts inside of commands are looked into (`bash -c "sh -c …"`).
const DEPTH_MAX: usize = 4;

/// A script with more commands is a high risk: nobody reads that.
pub(super) const COMMANDS_MAX: usize = 500;

/// The level, and why it is high.
pub(super) fn of_argv(argv: &[String], scope: &Scope) -> (Risk, Option<String>) {
    let command = Command { words: argv.to_vec(), ..Command::default() };
    if let Some(why) = high(&command, scope, DEPTH_MAX) {
        return (Risk::High, Some(why));
    }
    let reads = argv.split_first().is_some_and(|(program, words)| {
        let inside = |word: &String| word.starts_with('-') || reach(word, scope) != Reach::Outside;
        class(program) == Some(Class::Reads)
            && !program.contains('/')
            && words.len() <= WORDS_MAX
            && words.iter().all(inside)
    });
    (if reads { Risk::Low } else { Risk::Medium }, None)
}

/// A script that is not understood is at least ordinary work.
pub(super) fn of_script(script: &str, scope: &Scope) -> (Risk, Option<String>) {
    if script.len() > SCRIPT_BYTES_MAX {
        return (Risk::High, None); // Nobody looked.
    }
    // A quotation mark in a comment or a here-document hides what is between it and the next one,
    // but not from a look at each line.
    let by_line = || script.lines().find_map(|line| high_in(line, scope, DEPTH_MAX));
    let is_hiding = ["#", "<<"].iter().any(|mark| script.contains(mark));
    let whole = high_in(script, scope, DEPTH_MAX);
    match whole.or_else(|| is_hiding.then(by_line).flatten()) {
        Some(why) => (Risk::High, Some(why)),
        None => (Risk::Medium, None),
    }
}

fn high_in(script: &str, scope: &Scope, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let commands = rough::commands(script);
    if commands.len() > COMMANDS_MAX {
        return Some(format!("has more than {COMMANDS_MAX} commands"));
    }
    commands.iter().find_map(|command| high(command, scope, depth))
}

/// Why this command is a high risk, if it is.
fn high(command: &Command, scope: &Scope, depth: usize) -> Option<String> {
    let words = &command.words;
    if let Some(device) = words.iter().chain(&command.writes).find_map(|word| device(word)) {
        return Some(format!("touches the device {}", brief(device)));
    }
    if let Some(file) = outside(&command.writes, scope) {
        return Some(format!("writes outside the working directory: {}", brief(file)));
    }
    let (program, rest) = program(words)?;
    if command.piped && is_interpreter(program) {
        return Some(format!("pipes into `{}`, which runs what it gets", brief(program)));
    }
    match class(program) {
        Some(Class::Runs | Class::Wraps) => inner(program, rest, scope, depth),
        _ => by_name(program, rest, scope),
    }
}

/// What the name of a program says about its words.
fn by_name(program: &str, rest: &[String], scope: &Scope) -> Option<String> {
    let name = brief(program);
    match class(program) {
        Some(Class::Escalates) => Some(format!("`{name}` runs with more rights")),
        Some(Class::Leaves) => Some(format!("`{name}` reaches other machines")),
        Some(Class::System) => Some(format!("`{name}` changes the machine itself")),
        Some(Class::Deletes) => outside(operands(rest), scope)
            .map(|path| format!("deletes outside the working directory: {}", brief(path))),
        Some(Class::Overwrites | Class::Rights) => outside(&changed(program, rest), scope)
            .map(|path| format!("changes what is outside the working directory: {}", brief(path))),
        Some(Class::Runs | Class::Wraps | Class::Kills | Class::Reads) => None,
        None => subcommand(program, rest),
    }
}

/// Past assignments and the words of the grammar.
pub(super) fn program(words: &[String]) -> Option<(&String, &[String])> {
    const GRAMMAR: &[&str] =
        &["!", "{", "do", "else", "elif", "if", "then", "time", "until", "while"];
    let skipped =
        |word: &&String| GRAMMAR.contains(&word.as_str()) || word.split_once('=').is_some();
    let at = words.iter().take_while(skipped).count();
    words.get(at..)?.split_first()
}

fn operands(words: &[String]) -> impl Iterator<Item = &String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (before, after) = words.split_at(end);
    before.iter().filter(|word| !word.starts_with('-')).chain(after.iter().skip(1))
}

/// The operands that are changed, where a program also has others.
fn changed<'a>(program: &str, words: &'a [String]) -> Vec<&'a str> {
    let operands: Vec<&str> = operands(words).map(String::as_str).collect();
    let in_place = |word: &String| word.starts_with("-i") || word.starts_with("--in-place");
    match base(program) {
        "cp" | "install" | "ln" => operands.last().copied().into_iter().collect(),
        "dd" => operands.iter().filter_map(|word| word.strip_prefix("of=")).collect(),
        "sed" if !words.iter().any(in_place) => Vec::new(),
        "sed" => operands.get(1..).unwrap_or_default().to_vec(),
        _ => operands,
    }
}

/// The first word that leads out; if there are too many to look up, any will do.
fn outside<'a, W: AsRef<str> + 'a>(
    words: impl IntoIterator<Item = &'a W>,
    scope: &Scope,
) -> Option<&'a str> {
    words
        .into_iter()
        .map(AsRef::as_ref)
        .filter(|word| !HARMLESS_DEVICES.contains(word))
        .enumerate()
        .find(|(at, word)| *at >= WORDS_MAX || reach(word, scope) != Reach::Inside)
        .map(|(_, word)| word)
}

/// Also finds `of=/dev/sda`.
fn device(word: &str) -> Option<&str> {
    let path = word.get(word.find("/dev/")?..)?;
    let before = word.strip_suffix(path).unwrap_or_default();
    let starts = before.is_empty() || before.ends_with(['=', ':', '@']);
    let harmless = HARMLESS_DEVICES.iter().any(|device| {
        path.strip_prefix(device).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    (starts && !harmless && !path.starts_with("/dev/fd/")).then_some(path)
}

/// Looks at the commands that the words of a command may hold: `bash -c '…'`, `find -exec … +`,
/// `xargs …`. Any word may be a script, or begin a command.
fn inner(program: &str, rest: &[String], scope: &Scope, depth: usize) -> Option<String> {
    let finds = base(program) == "find";
    let deletes = |word: &String| word == "-delete" || class(word) == Some(Class::Deletes);
    if finds && rest.iter().any(deletes) {
        let mut starts = rest.iter().take_while(|word| !word.starts_with(['-', '(', '!']));
        if let Some(path) = starts.find(|path| reach(path, scope) == Reach::Outside) {
            return Some(format!("deletes outside the working directory: {}", brief(path)));
        }
    }
    let mut in_shell = is_interpreter(program);
    let mut looked_up = false;
    for (at, word) in rest.iter().enumerate() {
        let class = class(word);
        let why = match class {
            Some(Class::Escalates | Class::Leaves | Class::System) => by_name(word, &[], scope),
            // One look at the files is enough; a second command in the same words is rare.
            Some(Class::Deletes | Class::Overwrites | Class::Rights) if !looked_up => {
                looked_up = true;
                let mut words = rest.get(at + 1..).unwrap_or_default().to_vec();
                // What it stands for is below where the search starts.
                words.retain(|word| !finds || word != FOUND);
                by_name(word, &words, scope)
            }
            None if family(word).is_some() && !looked_up => {
                looked_up = true;
                subcommand(word, rest.get(at + 1..).unwrap_or_default())
            }
            _ if in_shell && word.contains([' ', '\t', '\n', ';', '|', '&']) => {
                high_in(word, scope, depth)
            }
            _ => None,
        };
        if why.is_some() {
            return why;
        }
        in_shell |= is_interpreter(word);
    }
    None
}

fn subcommand(program: &str, rest: &[String]) -> Option<String> {
    let family = family(base(program))?;
    let leaves = match family.leaves {
        Leaves::All => return Some(format!("`{}` reaches other machines", family.program)),
        Leaves::Some(leaves) => leaves,
    };
    // Past options and their values, as in `git -C dir push`.
    let named = rest.iter().find(|word| listed(leaves, word))?;
    Some(format!("`{} {named}` reaches other machines", family.program))
}
