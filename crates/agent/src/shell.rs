//! What a command would do: is it safe, how risky is it, what would "always" cover.
//!
//! Reads the file system to resolve paths; never runs anything, and never decides whether a
//! command may run: that is for `session::policy` and for people.
//!
//! "Safe" is exact and small: one simple command made of literal words, its program on a list
//! (`safe.rs`), each option on that program's list, each path inside the working directory once
//! its links are followed. Whatever is not understood is not safe. The list is a comfort, no wall:
//! between the judgement and the run the files may change.
//!
//! Risk is a label for people and a bound for grants. It is estimated for every script
//! (`risk.rs`), and an estimate never makes anything safe.

use std::path::{Path, PathBuf};

use polyloop_session::Text;
use polyloop_session::policy::{Key, Risk};

mod cover;
mod path;
mod programs;
mod risk;
mod rough;
mod safe;
mod show;
#[cfg(test)]
mod tests;
mod words;

pub use show::{is_deceptive, visible};
pub use words::{literal_argv, quote};

/// A longer script is not looked into: it is asked about, as it stands.
pub const SCRIPT_BYTES_MAX: usize = 64 * 1024;

/// More words than this are not looked up in the file system one by one.
pub const WORDS_MAX: usize = 256;

/// Where a command that is judged safe finds its program. It must run with this as its `PATH`,
/// and without start-up files: other directories may hold programs of the same names.
pub const SAFE_PATH: &str = "/usr/bin:/bin";

const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];

/// What there is to know about a command before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The words of a simple literal command, else `bash -lc` and the script; the real ones, so
    /// whoever shows them goes through [`visible`].
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

/// Where a command would run, and what is never read there without asking.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Canonical, if it exists; where it does not, no path is found to be inside.
    cwd: PathBuf,
    private: Vec<PathBuf>,
    /// What everybody may write to and nobody keeps.
    temporary: Vec<PathBuf>,
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
    /// `private` are files and directories, wherever they are.
    pub fn new(cwd: &Path, private: &[PathBuf]) -> Scope {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Scope {
            cwd: real(cwd),
            private: private.iter().map(|path| real(path)).collect(),
            temporary: TEMPORARY.iter().map(|path| real(Path::new(path))).collect(),
        }
    }

    pub fn judge(&self, script: &str) -> Judged {
        match words::parse(script) {
            Ok(argv) => self.judge_words(&argv),
            Err(why) => self.judge_script(script, &why),
        }
    }

    /// The same for a command whose words are known.
    pub fn judge_argv(&self, argv: &[String]) -> Judged {
        let bytes = argv.iter().map(String::len).sum::<usize>();
        if argv.first().is_none_or(String::is_empty) || bytes > SCRIPT_BYTES_MAX {
            return self.judge_script(&quote(argv), "no program is named, or it is too long");
        }
        self.judge_words(argv)
    }

    fn judge_words(&self, argv: &[String]) -> Judged {
        let command = argv.iter().map(|word| word.as_str().into()).collect();
        let unsafe_because = match safe::check(argv, self) {
            Ok(reason) => {
                let cover = cover::of_argv(argv, Risk::Low, self);
                return self.judged(command, Risk::Low, reason, cover, true);
            }
            Err(why) => why,
        };
        let (risk, high) = risk::of_argv(argv, self);
        let cover = cover::of_argv(argv, risk, self);
        self.judged(command, risk, high.unwrap_or(unsafe_because), cover, false)
    }

    fn judge_script(&self, script: &str, why: &str) -> Judged {
        let command = ["bash", "-lc", script].map(Text::from).to_vec();
        let (risk, high) = risk::of_script(script, self);
        let cover = cover::exact(script, risk);
        self.judged(command, risk, high.unwrap_or_else(|| why.to_owned()), cover, false)
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
