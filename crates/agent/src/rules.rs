//! The rules file: what whoever runs this server always allows, asks about or denies.
//!
//! One rule a line: `allow`, `ask` or `deny`, then `tool`, `command` or `path`, then what it is
//! about. The strictest rule that is about a call counts, wherever it stands. A rule is one more
//! fact of a judgement: `session::policy` weighs it, and nothing is decided here.
//!
//! A denied or asked-about command is looked for wherever it could stand in a script, an allowed
//! one only where it certainly is all that is not harmless.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{Glob, GlobBuilder, GlobSet};
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

/// Words of one script that are followed through links; one with more is asked about.
const WORDS_FOLLOWED_MAX: usize = 4_000;

/// Words between those of a command that is looked for; more are taken for it.
const WORDS_BETWEEN_MAX: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct Rules {
    lines: Vec<Line>,
    /// The lines about paths below the working directory, and those about other ones.
    relative: Paths,
    absolute: Paths,
    /// The lines that forbid or ask, by the program they are about.
    strict: HashMap<String, Vec<usize>>,
}

/// All patterns at once, each with the line it is of.
#[derive(Clone, Debug, Default)]
struct Paths {
    set: GlobSet,
    lines: Vec<usize>,
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
    itself: Glob,
    below: Glob,
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
        if !bad.is_empty() {
            return Err(bad);
        }
        rules.index().map_err(|error| whole(error.to_string()))?;
        Ok(rules)
    }

    fn index(&mut self) -> Result<(), globset::Error> {
        self.relative = self.paths(|pattern| !pattern.absolute)?;
        self.absolute = self.paths(|pattern| pattern.absolute)?;
        for (at, line) in self.lines.iter().enumerate() {
            if let (About::Command(words), Says::Ask | Says::Deny) = (&line.about, line.says)
                && let Some(program) = words.first()
            {
                self.strict.entry(program.clone()).or_default().push(at);
            }
        }
        Ok(())
    }

    fn paths(&self, wanted: impl Fn(&Pattern) -> bool) -> Result<Paths, globset::Error> {
        let mut set = GlobSet::builder();
        let mut lines = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let About::Path(pattern) = &line.about else { continue };
            if wanted(pattern) {
                set.add(pattern.itself.clone()).add(pattern.below.clone());
                lines.extend([at, at]);
            }
        }
        Ok(Paths { set: set.build()?, lines })
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
        let is_about = |line: &&Line| matches!(&line.about, About::Tool(tool) if *tool == name);
        strictest(self.lines.iter().filter(is_about))
    }

    /// About a file or directory, or what is below it. `real` is where the path leads.
    pub fn of_path(&self, real: &Path, cwd: &Path) -> Option<Rule> {
        strictest(self.lines_at(real, cwd))
    }

    fn lines_at(&self, path: &Path, cwd: &Path) -> impl Iterator<Item = &Line> {
        let matching = |paths: &Paths, path: &Path| -> Vec<usize> {
            let found = paths.set.matches(path).into_iter();
            found.filter_map(|at| paths.lines.get(at).copied()).collect()
        };
        let mut found = matching(&self.absolute, path);
        if let Ok(relative) = path.strip_prefix(cwd) {
            found.extend(matching(&self.relative, relative));
        }
        found.sort_unstable();
        found.into_iter().filter_map(|at| self.lines.get(at))
    }

    /// Whether a path is not to be read as one of many.
    pub fn closes(&self, path: &Path, cwd: &Path) -> bool {
        self.of_path(path, cwd).is_some_and(|rule| rule.says != Says::Allow)
    }

    /// What a command may be judged harmless by: nothing that it reads is closed.
    pub fn close(self: &Arc<Rules>, scope: Scope, cwd: &Path) -> Scope {
        let closes = |line: &Line| line.says != Says::Allow && matches!(line.about, About::Path(_));
        if !self.lines.iter().any(closes) {
            return scope;
        }
        let (rules, cwd) = (self.clone(), cwd.to_owned());
        scope.with_closed(Arc::new(move |path| rules.closes(path, &cwd)))
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
        let words = || parts.commands.iter().flatten();
        if self.has_paths() {
            parts.hidden |= words().count() > WORDS_FOLLOWED_MAX;
        }
        let of_commands = parts.commands.iter().flat_map(|command| self.lines_for(command));
        let of_paths = (1..).zip(words()).flat_map(|(at, word)| {
            let paths = if self.has_paths() {
                named(word, directory, at <= WORDS_FOLLOWED_MAX)
            } else {
                Vec::new()
            };
            paths.into_iter().flat_map(|path| self.lines_at(&path, cwd).collect::<Vec<_>>())
        });
        let strict = of_commands.chain(of_paths).filter(|line| line.says != Says::Allow);
        let allowed = || {
            // A protected path is asked about whatever the rules allow.
            let protected = tool::bash::names_protected(script, directory, cwd);
            if protected { None } else { self.allowed(script, scope) }
        };
        strictest(strict).or_else(|| self.unseen(&parts)).or_else(allowed)
    }

    fn has_paths(&self) -> bool {
        !self.relative.lines.is_empty() || !self.absolute.lines.is_empty()
    }

    /// The lines against a command, wherever in its words it begins (`sudo git push`), and by
    /// whatever path its program is called.
    fn lines_for(&self, command: &[String]) -> Vec<&Line> {
        let mut found = Vec::new();
        for (at, word) in command.iter().enumerate() {
            let name = word.rsplit('/').next().unwrap_or_default();
            let of = |program: &str| self.strict.get(program).into_iter().flatten();
            let whole = of(word).chain(of(name).filter(|_| name != word));
            let after = command.get(at + 1..).unwrap_or_default();
            found.extend(whole.filter_map(|line| self.lines.get(*line)).filter(|line| {
                matches!(&line.about, About::Command(words)
                    if words.get(1..).is_some_and(|rest| follows(after, rest)))
            }));
        }
        found
    }

    /// Whether the script could be read in two ways, or words of a command that is not to run
    /// stand for others.
    fn is_doubtful(&self, script: &str, parts: &shell::RoughParts) -> bool {
        const READ_OTHERWISE: &[&str] = &["#", "<<", "$'"];
        if READ_OTHERWISE.iter().any(|mark| script.contains(mark)) {
            return true;
        }
        let stands_for_others = |word: &String| word.contains(['$', '`', '{', '*', '?', '[']);
        parts.commands.iter().any(|command| {
            command.iter().any(|word| self.strict.contains_key(word))
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
        let lines = self.lines.iter().filter(|line| line.says == Says::Deny);

        let literal = lines.filter_map(|line| match &line.about {
            About::Path(pattern) => pattern.literal.as_ref(),
            About::Tool(_) | About::Command(_) => None,
        });
        literal.map(|path| crate::patch::path::real(&cwd.join(path))).collect()
    }
}

/// The first of the strictest.
fn strictest<'r>(lines: impl Iterator<Item = &'r Line>) -> Option<Rule> {
    let found = lines.reduce(|best, line| if line.says > best.says { line } else { best });
    found.map(Line::rule)
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
                let pattern = &pattern.itself;
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
        built.map_err(|error| format!("`{text}`: {}", error.kind()))
    };
    let literal = !trimmed.contains(['*', '?', '[', '{', '\\']);
    Ok(Pattern {
        itself: glob(trimmed)?,
        below: glob(&format!("{trimmed}/**"))?,
        absolute: trimmed.starts_with('/'),
        literal: literal.then(|| trimmed.into()),
    })
}

/// The paths that a word of a command may name, as it stands and, if asked for, where it leads.
fn named(word: &str, directory: &Path, follow: bool) -> Vec<PathBuf> {
    let values = std::iter::once(word).chain(word.split_once('=').map(|(_, value)| value));
    let mut paths: Vec<PathBuf> = Vec::new();
    for value in values {
        let path = crate::patch::path::normal(&directory.join(value));
        if follow {
            paths.push(crate::patch::path::real(&path));
        }
        paths.push(path);
    }
    paths
}

fn begins(argv: &[&str], words: &[String]) -> bool {
    argv.len() >= words.len() && argv.iter().zip(words).all(|(have, want)| have == want)
}

/// Whether words stand there in this order, past options and their values (`git -C dir push`).
fn follows(mut given: &[String], wanted: &[String]) -> bool {
    let end = given.len().saturating_sub(WORDS_BETWEEN_MAX);
    for want in wanted {
        let mut valued = false;
        loop {
            let Some((word, rest)) = given.split_first() else { return false };
            if rest.len() < end {
                return true;
            }
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
