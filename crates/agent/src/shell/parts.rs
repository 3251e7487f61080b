//! The commands that a script may hold, each with its words: for rules that forbid.
//!
//! No grammar, and never used to call something safe. It knows nothing of comments, here-documents
//! and `$'…'`, so it may miss a command beside one of them: whoever forbids also asks the real
//! grammar (`Scope::commands`), and takes a script that neither reads for certain as unseen. Where
//! it finds that it cannot see what runs, it says so.

use super::programs::is_interpreter;
use super::risk;
use super::rough::{self, Command};

/// How deep scripts inside of words are looked into.
const DEPTH_MAX: usize = 8;

/// Runs what nobody reads here.
const UNSEEN: &[&str] = &[".", "eval", "source"];

/// Whether a command runs what nobody reads here: a file, what is piped into it, its words.
pub fn runs_unseen(command: &[String]) -> bool {
    let program = command.first().map(String::as_str).unwrap_or_default();
    UNSEEN.contains(&program) || is_interpreter(program)
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct RoughParts {
    /// The words of each, and the files it writes to.
    pub commands: Vec<Vec<String>>,
    /// A program in it is not written out, or code comes from elsewhere.
    pub hidden: bool,
}

pub fn rough_parts(script: &str) -> RoughParts {
    let mut parts = RoughParts::default();
    parts.find(script, DEPTH_MAX);
    parts
}

impl RoughParts {
    fn find(&mut self, script: &str, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            self.hidden = true;
            return;
        };
        self.hidden |= begins_with_output(script);
        for Command { mut words, piped, writes } in rough::commands(script) {
            if let Some((program, _)) = risk::program(&words) {
                let unwritten = program.contains('$') || UNSEEN.contains(&program.as_str());
                self.hidden |= unwritten || piped && is_interpreter(program);
            }
            let mut in_shell = false;
            for word in &words {
                if in_shell && word.contains([' ', '\t', '\n', ';', '|', '&', '`', '$']) {
                    self.find(word, depth);
                }
                in_shell |= is_interpreter(word) || word == "eval";
            }
            words.extend(writes);
            self.commands.push(words);
        }
    }
}

/// Whether what a command prints is a command: `$(…)` where a program's name should stand.
fn begins_with_output(script: &str) -> bool {
    let marks = script.match_indices("$(").chain(script.match_indices('`'));
    marks.into_iter().any(|(at, _)| {
        let before = script.get(..at).unwrap_or_default().trim_end_matches([' ', '\t', '"']);
        before.is_empty() || before.ends_with([';', '|', '&', '(', '{', '\n', '!'])
    })
}
