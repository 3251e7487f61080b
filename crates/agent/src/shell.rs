//! What a command would do: is it safe, how risky is it, what would "always" cover.
//!
//! Reads the file system to resolve paths; never runs anything, and never decides whether a
//! command may run: that is for `session::policy` and for people.
//!
//! "Safe" is exact: the whole script is read by the grammar of bash (`read.rs`), gone through as
//! bash would (`walk.rs`, `expand.rs`), and each command in it is on a list (`rules.rs` and the
//! tables below it) with every option it has, each path inside the working directory once its
//! links are followed. Whatever is not understood is not safe. The list is a comfort, no wall:
//! between the judgement and the run the files may change.
//!
//! Risk is a label for people and a bound for grants. It is estimated for every script
//! (`risk.rs`), and an estimate never makes anything safe.

use std::path::Path;

use polyloop_session::Text;
use polyloop_session::policy::{Key, Risk};

mod cover;
mod expand;
mod filter;
mod grammar;
mod look;
mod parts;
mod path;
mod place;
mod programs;
mod read;
mod repository;
mod risk;
mod rough;
mod rules;
mod secrets;
mod show;
#[cfg(test)]
mod tests;
mod walk;
mod words;

pub use parts::{RoughParts, rough_parts, runs_unseen};
pub use place::{Closed, SAFE_PATH, Scope};
pub use words::{literal_argv, quote};

/// A longer script is not looked into: it is asked about, as it stands.
pub const SCRIPT_BYTES_MAX: usize = 64 * 1024;

/// More words than this are not looked up in the file system one by one.
pub const WORDS_MAX: usize = 256;

/// What there is to know about a command before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The words of a simple literal command, else `bash -lc` and the script; the real ones, so
    /// whoever shows them goes through `session::shown`.
    pub command: Vec<Text>,
    /// It reads, inside the working directory, and does nothing else.
    pub safe: bool,
    pub risk: Risk,
    /// One line for people.
    pub reason: Text,
    /// What "always" would cover, in words.
    pub covers: Text,
    /// Equal keys are what "always" covers.
    pub keys: Vec<Key>,
}

/// Judges a script for `bash -lc`, run in `cwd`. Blocks while it resolves paths.
pub fn judge(script: &str, cwd: &Path) -> Judged {
    Scope::new(cwd, &[]).judge(script)
}

/// Judges a command whose words are known.
pub fn judge_argv(argv: &[String], cwd: &Path) -> Judged {
    Scope::new(cwd, &[]).judge_argv(argv)
}

impl Scope {
    pub fn judge(&self, script: &str) -> Judged {
        let safe = match script.len() <= SCRIPT_BYTES_MAX {
            true => walk::script(unwrapped(script).as_deref().unwrap_or(script), self),
            false => Err(format!("longer than {SCRIPT_BYTES_MAX} bytes, so not looked into")),
        };
        match words::parse(script) {
            Ok(argv) => self.judge_words(&argv, safe),
            Err(_) => self.judge_script(script, safe),
        }
    }

    /// Whether the script would be safe if these commands were, which are not of the shell itself.
    pub fn is_safe_beside(&self, script: &str, allows: &dyn Fn(&[&str]) -> bool) -> bool {
        let unwrapped = unwrapped(script);
        script.len() <= SCRIPT_BYTES_MAX
            && walk::script_beside(unwrapped.as_deref().unwrap_or(script), self, allows).is_ok()
    }

    /// The words of every command in it that is not of the shell itself, if all are certain.
    pub fn commands(&self, script: &str) -> Option<Vec<Vec<String>>> {
        let found = std::cell::RefCell::new(Vec::new());
        let take = |argv: &[&str]| {
            found.borrow_mut().push(argv.iter().map(|word| (*word).to_owned()).collect());
            true
        };
        self.is_safe_beside(script, &take).then(|| found.take())
    }

    /// The same for a command whose words are known.
    pub fn judge_argv(&self, argv: &[String]) -> Judged {
        let bytes = argv.iter().map(String::len).sum::<usize>();
        if argv.first().is_none_or(String::is_empty) || bytes > SCRIPT_BYTES_MAX {
            let why = "no program is named, or it is too long".to_owned();
            return self.judge_script(&quote(argv), Err(why));
        }
        let safe = match unwrapped_argv(argv) {
            Some(script) => walk::script(script, self),
            None => walk::argv(argv, self),
        };
        self.judge_words(argv, safe)
    }

    fn judge_words(&self, argv: &[String], safe: Result<String, String>) -> Judged {
        let command = argv.iter().map(|word| word.as_str().into()).collect();
        let why = match safe {
            Ok(reason) => {
                let cover = cover::of_argv(argv, Risk::Low, self);
                return self.judged(command, Risk::Low, reason, cover, true);
            }
            Err(why) => why,
        };
        let (risk, high) = risk::of_argv(argv, self);
        let cover = cover::of_argv(argv, risk, self);
        self.judged(command, risk, high.unwrap_or(why), cover, false)
    }

    fn judge_script(&self, script: &str, safe: Result<String, String>) -> Judged {
        let command = ["bash", "-lc", script].map(Text::from).to_vec();
        let why = match safe {
            Ok(reason) => {
                let cover = cover::exact(script, Risk::Low);
                return self.judged(command, Risk::Low, reason, cover, true);
            }
            Err(why) => why,
        };
        let (risk, high) = risk::of_script(script, self);
        let cover = cover::exact(script, risk);
        self.judged(command, risk, high.unwrap_or(why), cover, false)
    }

    fn judged(
        &self,
        command: Vec<Text>,
        risk: Risk,
        reason: String,
        cover: cover::Cover,
        safe: bool,
    ) -> Judged {
        let covers = cover.words.into();
        Judged { command, safe, risk, reason: reason.into(), covers, keys: vec![cover.key] }
    }
}

/// The words that bash gives to the last command of a script, run in `cwd`, where all of them are
/// certain. For holding the judge against bash itself.
pub fn certain_argv(script: &str, cwd: &Path) -> Option<Vec<String>> {
    walk::last_words(script, &Scope::new(cwd, &[]))
}

/// The script in `bash -lc script`: what such a command does, but for the user's start-up files.
/// One that is judged safe runs without these, so the script is what must run.
pub fn unwrapped(script: &str) -> Option<String> {
    let argv = words::parse(script).ok()?;
    unwrapped_argv(&argv).map(str::to_owned)
}

fn unwrapped_argv(argv: &[String]) -> Option<&str> {
    match argv {
        [shell, option, script] if shell == "bash" && option == "-lc" => Some(script),
        _ => None,
    }
}
