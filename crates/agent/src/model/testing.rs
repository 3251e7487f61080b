//! What the tests of the providers' interfaces share: prompts made of parts, golden files, and
//! what holds for every request and every answer.
//!
//! Each interface is one `Interface`; `answers_hold` and `requests_hold` make the shared checks
//! tests of its own. `POLYLOOP_BLESS=1` rewrites the golden files; read them then.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use super::api::Api;
use super::json;
use super::table::Card;

mod answers;
mod arbitrary;
mod parts;
mod refusals;
mod requests;

pub use answers::{event, events, history};
pub use arbitrary::any_json;
pub use parts::*;
pub use refusals::{LATER, check_failure};
pub use requests::begins;

/// An interface as its tests see it.
#[derive(Clone, Copy)]
pub struct Interface {
    pub api: &'static dyn Api,
    /// Of its golden files.
    pub folder: &'static str,
    pub model: &'static str,
    pub instructions: &'static str,
    /// What is told of `bash` and of `apply_patch`.
    pub tools: [&'static str; 2],
    /// What means something in its answers: names of fields, and what stands in them.
    pub words: &'static str,
    /// Whether what it keeps of a block is an object even where the block was none.
    pub keeps_objects: bool,
}

pub fn card() -> Card {
    Card {
        tokens_max: 200_000,
        window_known: true,
        output_tokens_max: 64_000,
        price: None,
        images: true,
        reasoning: true,
        native_shell: false,
    }
}

/// Of a model that takes no pictures and does not think.
pub fn plain_card() -> Card {
    Card { images: false, reasoning: false, ..card() }
}

impl Interface {
    pub const fn on(self, model: &'static str) -> Interface {
        Interface { model, ..self }
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/models").join(self.folder).join(file)
    }

    fn compare(&self, file: &str, actual: &str) {
        let path = self.path(file);
        if std::env::var_os("POLYLOOP_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, actual).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(expected == actual, "{} is not:\n{actual}", path.display());
    }

    /// A golden answer.
    pub fn stream(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(&format!("answers/{name}.sse"))).unwrap()
    }

    /// Every golden answer, with its name.
    fn streams(&self) -> Vec<(String, Vec<u8>)> {
        let files = std::fs::read_dir(self.path("answers")).unwrap();
        let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "sse"));
        paths.sort();
        assert!(paths.len() >= 6, "{} has {} answers", self.folder, paths.len());
        let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
    }
}

/// JSON in lines, its fields in their own order and its numbers as they are.
fn pretty(json: &str) -> String {
    let json = json::compact(json);
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
        let closes = |next: Option<&char>| matches!(next, Some('}' | ']'));
        match c {
            _ if quoted => out.push(c),
            '{' | '[' if closes(rest.peek()) => out.extend([c, rest.next().unwrap()]),
            '{' | '[' => {
                depth += 1;
                out.push(c);
                out.push_str(&line(depth));
            }
            '}' | ']' => {
                depth -= 1;
                out.push_str(&line(depth));
                out.push(c);
            }
            ',' => out.push_str(&format!(",{}", line(depth))),
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    out.push('\n');
    out
}

/// What holds for the answers of every interface, as tests of this one.
macro_rules! answers_hold {
    ($interface:expr) => {
        #[test]
        fn answers_are_as_in_the_files() {
            $interface.check_answers();
        }

        #[test]
        fn where_bytes_are_split_makes_no_difference() {
            $interface.check_splits();
        }

        #[test]
        fn what_came_goes_back() {
            $interface.check_ways_back();
        }

        #[test]
        fn nothing_follows_the_end() {
            $interface.check_ends();
        }

        #[test]
        fn any_events_are_read() {
            $interface.check_any_events();
        }

        #[test]
        fn any_bytes_are_read() {
            $interface.check_any_bytes();
        }

        #[test]
        fn changed_answers_are_read() {
            $interface.check_changed_answers();
        }
    };
}

/// What holds for the requests of every interface, as tests of this one.
macro_rules! requests_hold {
    ($interface:expr) => {
        #[test]
        fn a_picture_that_is_not_taken_is_told_of() {
            $interface.check_picture_not_taken();
        }

        #[test]
        fn arguments_may_be_invalid() {
            $interface.check_invalid_arguments();
        }

        #[test]
        fn what_was_explained_stands_behind_its_call() {
            $interface.check_explained_call();
        }

        #[test]
        fn without_tools_nothing_is_said_of_them() {
            $interface.check_no_tools();
        }

        #[test]
        fn what_all_requests_share_is_not_copied() {
            $interface.check_shared();
        }

        #[test]
        fn an_assistant_may_begin_and_end() {
            $interface.check_ends_of_prompt();
        }
    };
}

pub(in crate::model) use {answers_hold, requests_hold};
