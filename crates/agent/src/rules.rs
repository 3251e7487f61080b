//! The rules file: what whoever runs this server always allows, asks about or denies.
//!
//! One rule a line: `allow`, `ask` or `deny`, then `tool`, `command` or `path`, then what it is
//! about. The strictest rule that is about a call counts, wherever it stands. A rule is one more
//! fact of a judgement: `session::policy` weighs it, and nothing is decided here.
//!
//! A denied or asked-about command is looked for wherever it could stand in a script, an allowed
//! one only where it certainly is all that is not harmless.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use polyloop_session::Text;
use polyloop_session::policy::{Rule, Says};
use polyloop_session::shown::visible;

use crate::shell::{self, Scope};
use crate::tool;

#[cfg(test)]
mod tests;

/// The longest file that is read.
pub const RULES_BYTES_MAX: usize = 256 * 1024;

/// More are an error.
pub const RULES_MAX: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub struct Rules {
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    says: Says,
    about: About,
    text: Text,
}

#[derive(Clone, Debug)]
enum About {
    Tool(&'static str),
    /// The words that a command begins with.
    Command(Vec<String>),
    Path(Pattern),
}

/// What matches a path and everything below it.
#[derive(Clone, Debug)]
struct Pattern {
    itself: GlobMatcher,
    below: GlobMatcher,
    /// Absolute, so not looked for below the working directory.
    absolute: bool,
    /// The path, where nothing in it stands for something else.
    literal: Option<PathBuf>,
}

/// A line that is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule {
    /// Counted from 1.
    pub line: usize,
    pub why: String,
}

impl std::fmt::Display for BadRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl Rules {
    /// Reads the whole file; the error names every line that is no rule.
    pub fn parse(text: &str) -> Result<Rules, Vec<BadRule>> {
        let whole = |why: String| vec![BadRule { line: 1, why }];
        if text.len() > RULES_BYTES_MAX {
            return Err(whole(format!("the file is longer than {RULES_BYTES_MAX} bytes")));
        }
        let mut rules = Rules::default();
        let mut bad = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match line(text) {
                Ok(line) => rules.lines.push(line),
                Err(why) => bad.push(BadRule { line: number, why }),
            }
        }
        if rules.lines.len() > RULES_MAX {
            bad.extend(whole(format!("there are more than {RULES_MAX} rules")));
        }
        if bad.is_empty() { Ok(rules) } else { Err(bad) }
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// What each rule means, in words.
    pub fn describe(&self) -> impl Iterator<Item = String> + '_ {
        self.lines.iter().map(Line::describe)
    }

    /// About every call of a tool.
    pub fn of_tool(&self, name: &str) -> Option<Rule> {
        self.strictest(|about| matches!(about, About::Tool(tool) if *tool == name))
    }

    /// About a file or directory, or what is below it. `real` is where the path leads.
    pub fn of_path(&self, real: &Path, cwd: &Path) -> Option<Rule> {
        self.strictest(|about| matches!(about, About::Path(pattern) if pattern.is_at(real, cwd)))
    }

    /// Whether a path is not to be read as one of many.
    pub fn closes(&self, path: &Path, cwd: &Path) -> bool {
        self.of_path(path, cwd).is_some_and(|rule| rule.says != Says::Allow)
    }

    /// About a script for `bash` that runs in `directory`, with the paths that its words name.
    pub fn of_command(
        &self,
        script: &str,
        scope: &Scope,
        directory: &Path,
        cwd: &Path,
    ) -> Option<Rule> {
        if self.lines.is_empty() {
            return None;
        }
        let mut parts = shell::rough_parts(script);
        match scope.commands(script) {
            // All of it is known, to the letter.
            Some(exact) => {
                parts.hidden &= exact.iter().any(|command| shell::runs_unseen(command));
                parts.commands.extend(exact);
            }
            None => parts.hidden |= self.is_doubtful(script, &parts),
        }
        let strict = self.strictest_of(|line| match &line.about {
            About::Command(words) if line.says != Says::Allow => {
                parts.commands.iter().any(|command| begins_somewhere(command, words))
            }
            About::Path(pattern) if line.says != Says::Allow => {
                let named = |word: &String| is_named(pattern, word, directory, cwd);
                parts.commands.iter().flatten().any(named)
            }
            About::Tool(_) | About::Command(_) | About::Path(_) => false,
        });
        strict.or_else(|| self.unseen(&parts)).or_else(|| self.allowed(script, scope))
    }

    /// Whether the script could be read in two ways, or words of a command that is not to run
    /// stand for others.
    fn is_doubtful(&self, script: &str, parts: &shell::RoughParts) -> bool {
        const READ_OTHERWISE: &[&str] = &["#", "<<", "$'"];
        if READ_OTHERWISE.iter().any(|mark| script.contains(mark)) {
            return true;
        }
        let strict = self.lines.iter().filter(|line| line.says != Says::Allow);
        let programs: Vec<&String> = strict
            .filter_map(|line| match &line.about {
                About::Command(words) => words.first(),
                About::Tool(_) | About::Path(_) => None,
            })
            .collect();
        let stands_for_others = |word: &String| word.contains(['$', '`', '{', '*', '?', '[']);
        parts.commands.iter().any(|command| {
            command.iter().any(|word| programs.contains(&word))
                && command.iter().any(stands_for_others)
        })
    }

    /// Where something is not to run, or not to be touched, unasked, a script that cannot be made
    /// out is asked about.
    fn unseen(&self, parts: &shell::RoughParts) -> Option<Rule> {
        let strict = |line: &&Line| line.says != Says::Allow && !line.about.is_tool();
        let line = self.lines.iter().find(strict)?;
        let text = format!("{} (and what this runs cannot be seen)", line.text);
        parts.hidden.then(|| Rule { says: Says::Ask, line: text.into() })
    }

    /// Every command in it that is not harmless begins with words that are allowed.
    fn allowed(&self, script: &str, scope: &Scope) -> Option<Rule> {
        let allowing = |line: &&Line| line.says == Says::Allow && line.about.is_command();
        let lines: Vec<&Line> = self.lines.iter().filter(allowing).collect();
        let first = *lines.first()?;
        let used = std::cell::Cell::new(None);
        let allows = |argv: &[&str]| {
            let begins = |line: &&&Line| match &line.about {
                About::Command(words) => begins(argv, words),
                About::Tool(_) | About::Path(_) => false,
            };
            let found = lines.iter().find(begins).copied();
            used.set(found.or_else(|| used.take()));
            found.is_some()
        };
        scope.is_safe_beside(script, &allows).then(|| used.take().unwrap_or(first).rule())
    }

    /// The paths that a command must not find: denied, and written out in full.
    pub fn denied_paths(&self, cwd: &Path) -> Vec<PathBuf> {
        self.literal_paths(cwd, |says| says == Says::Deny)
    }

    /// The paths that no command reads unasked.
    pub fn closed_paths(&self, cwd: &Path) -> Vec<PathBuf> {
        self.literal_paths(cwd, |says| says != Says::Allow)
    }

    fn literal_paths(&self, cwd: &Path, wanted: impl Fn(Says) -> bool) -> Vec<PathBuf> {
        let lines = self.lines.iter().filter(|line| wanted(line.says));
        let literal = lines.filter_map(|line| match &line.about {
            About::Path(pattern) => pattern.literal.as_ref(),
            About::Tool(_) | About::Command(_) => None,
        });
        literal.map(|path| crate::patch::path::real(&cwd.join(path))).collect()
    }

    fn strictest(&self, is_about: impl Fn(&About) -> bool) -> Option<Rule> {
        self.strictest_of(|line| is_about(&line.about))
    }

    fn strictest_of(&self, holds: impl Fn(&Line) -> bool) -> Option<Rule> {
        let lines = self.lines.iter().filter(|line| holds(line));
        // The first of the strictest.
        let found = lines.reduce(|best, line| if line.says > best.says { line } else { best });
        found.map(Line::rule)
    }
}

/// What is said of a call about which several rules speak.
pub fn stricter(one: Option<Rule>, other: Option<Rule>) -> Option<Rule> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.says > one.says { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// What is said of a call that touches several things: allowed only if each is.
pub fn of_all(rules: impl IntoIterator<Item = Option<Rule>>) -> Option<Rule> {
    let mut all: Option<Rule> = None;
    let mut some_silent = false;
    for rule in rules {
        some_silent |= rule.is_none();
        all = stricter(all, rule);
    }
    all.filter(|rule| rule.says != Says::Allow || !some_silent)
}

impl Line {
    fn rule(&self) -> Rule {
        Rule { says: self.says, line: self.text.clone() }
    }

    fn describe(&self) -> String {
        let does = match self.says {
            Says::Allow => "runs without asking",
            Says::Ask => "is always asked about",
            Says::Deny => "never runs",
        };
        match &self.about {
            About::Tool(name) => format!("every call of {name} {does}"),
            About::Command(words) => {
                let words = shell::quote(words);
                let begins = format!("a command that begins with `{words}` {does}");
                match self.says {
                    Says::Allow => format!("{begins}, alone or beside harmless ones"),
                    Says::Ask | Says::Deny => format!("{begins}, wherever it stands in a script"),
                }
            }
            About::Path(pattern) => {
                let place = if pattern.absolute { "" } else { " below the working directory" };
                let pattern = pattern.itself.glob();
                format!("a call that touches {pattern}{place}, or anything in it, {does}")
            }
        }
    }
}

impl About {
    fn is_command(&self) -> bool {
        matches!(self, About::Command(_))
    }

    fn is_tool(&self) -> bool {
        matches!(self, About::Tool(_))
    }
}

fn line(text: &str) -> Result<Line, String> {
    let (says, rest) = split(text);
    let says = match says {
        "allow" => Says::Allow,
        "ask" => Says::Ask,
        "deny" => Says::Deny,
        other => return Err(format!("`{other}`: begin with allow, ask or deny")),
    };
    let (kind, what) = split(rest);
    if what.is_empty() && ["tool", "command", "path"].contains(&kind) {
        return Err(format!("say which {kind}"));
    }
    let about = match kind {
        "tool" => About::Tool(tool_name(what)?),
        "command" => About::Command(command(what)?),
        "path" => About::Path(pattern(what)?),
        "" => return Err("say what it is about: tool, command or path".to_owned()),
        other => return Err(format!("`{other}`: a rule is about a tool, a command or a path")),
    };
    Ok(Line { says, about, text: visible(text).into() })
}

fn split(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

fn tool_name(name: &str) -> Result<&'static str, String> {
    let known = || tool::ALL.iter().map(|tool| tool.spec().name);
    known().find(|known| *known == name).ok_or_else(|| {
        let known: Vec<&str> = known().collect();
        format!("`{name}` is no tool; the tools are {}", known.join(", "))
    })
}

fn command(words: &str) -> Result<Vec<String>, String> {
    let plain = "give plain words, as in `cargo test`; quote what has blanks";
    shell::literal_argv(words).ok_or_else(|| format!("`{words}`: {plain}"))
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let trimmed = text.strip_suffix("/**").unwrap_or(text).trim_end_matches('/');
    let trimmed = trimmed.strip_prefix("./").unwrap_or(trimmed);
    if trimmed.is_empty() || trimmed.split('/').any(|part| part == ".." || part == ".") {
        return Err(format!(
            "`{text}`: give a path below the working directory, or an absolute one"
        ));
    }
    if trimmed.starts_with('~') {
        return Err(format!("`{text}`: write the home directory out"));
    }
    let glob = |pattern: &str| {
        let built = GlobBuilder::new(pattern).literal_separator(true).build();
        let built = built.map_err(|error| format!("`{text}`: {}", error.kind()));
        built.map(|glob| glob.compile_matcher())
    };
    let literal = !trimmed.contains(['*', '?', '[', '{', '\\']);
    Ok(Pattern {
        itself: glob(trimmed)?,
        below: glob(&format!("{trimmed}/**"))?,
        absolute: trimmed.starts_with('/'),
        literal: literal.then(|| trimmed.into()),
    })
}

impl Pattern {
    fn is_at(&self, path: &Path, cwd: &Path) -> bool {
        let path = match self.absolute {
            true => path,
            false => match path.strip_prefix(cwd) {
                Ok(relative) => relative,
                Err(_) => return false,
            },
        };
        self.itself.is_match(path) || self.below.is_match(path)
    }
}

/// Whether a word of a command may be the name of what is meant, as it stands or where it leads.
fn is_named(pattern: &Pattern, word: &str, directory: &Path, cwd: &Path) -> bool {
    let values = std::iter::once(word).chain(word.split_once('=').map(|(_, value)| value));
    let mut paths = values.map(|value| crate::patch::path::normal(&directory.join(value)));
    paths.any(|path| {
        pattern.is_at(&path, cwd) || pattern.is_at(&crate::patch::path::real(&path), cwd)
    })
}

fn begins(argv: &[&str], words: &[String]) -> bool {
    argv.len() >= words.len() && argv.iter().zip(words).all(|(have, want)| have == want)
}

/// The same for any place in the words (`sudo git push`), past options and their values
/// (`git -C dir push`), by whatever path the program is called.
fn begins_somewhere(command: &[String], words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let is_program = |word: &String| {
        word == program || word.rsplit('/').next().is_some_and(|name| name == program)
    };
    let starts = command.iter().enumerate().filter(|(_, word)| is_program(word));
    let mut after = starts.map(|(at, _)| command.get(at + 1..).unwrap_or_default());
    after.any(|after| follows(after, rest))
}

fn follows(mut given: &[String], wanted: &[String]) -> bool {
    for want in wanted {
        let mut valued = false;
        loop {
            let Some((word, rest)) = given.split_first() else { return false };
            given = rest;
            if word == want {
                break;
            }
            match (word.starts_with('-'), valued) {
                (true, _) => valued = true,
                (false, true) => valued = false,
                (false, false) => return false,
            }
        }
    }
    true
}
