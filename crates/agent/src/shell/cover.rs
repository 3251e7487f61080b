//! What "always" covers: a key for comparing, and a sentence for people.
//!
//! The same function makes the key when leave is given and when the next command comes, so equal
//! keys are what is covered. No wider than the sentence says.

use polyloop_session::policy::{Key, Risk};
use sha2::{Digest as _, Sha256};

use super::path::{Reach, reach};
use super::programs::{Class, class, family, listed};
use super::show::brief;
use super::words::{quote, quote_word};
use super::{Scope, WORDS_MAX};

/// A longer script stands in its key by its hash: keys are kept with the session.
const KEY_BYTES_MAX: usize = 1024;

pub(super) struct Cover {
    pub(super) key: Key,
    pub(super) words: String,
}

pub(super) fn of_argv(argv: &[String], risk: Risk, scope: &Scope) -> Cover {
    by_subcommand(argv, risk)
        .or_else(|| by_program(argv, risk, scope))
        .unwrap_or_else(|| exact(&quote(argv), risk))
}

/// This script and no other.
pub(super) fn exact(script: &str, risk: Risk) -> Cover {
    let what = if script.len() <= KEY_BYTES_MAX {
        format!("bash:exact:{script}")
    } else {
        format!("bash:sha256:{:x}", Sha256::digest(script))
    };
    let words = format!("exactly `{}`, for this session", brief(script));
    Cover { key: Key { what: what.into(), risk }, words }
}

/// Program and subcommand, whatever else there is.
fn by_subcommand(argv: &[String], risk: Risk) -> Option<Cover> {
    let [program, subcommand, rest @ ..] = argv else { return None };
    let family = family(program)?;
    if !is_name(subcommand) || listed(family.exact, subcommand) {
        return None;
    }
    let mut prefix = format!("{program} {subcommand}");
    let mut arguments = rest;
    if listed(family.nested, subcommand) {
        let (nested, after) = rest.split_first()?;
        if !is_name(nested) || listed(family.exact, nested) {
            return None;
        }
        prefix = format!("{prefix} {nested}");
        arguments = after;
    }
    if arguments.iter().any(|word| changes_the_nature(word)) {
        return None;
    }
    let what = format!("bash:prefix:{prefix}").into();
    let words = format!(
        "`{prefix}` with any arguments that do not delete, force or run something else, \
         for this session"
    );
    Some(Cover { key: Key { what, risk }, words })
}

/// Programs that write, but do nothing else with their operands.
const PLAIN: &[&str] = &["mkdir", "mktemp", "touch"];

/// The program with the same options, and any operands that stay where they may.
fn by_program(argv: &[String], risk: Risk, scope: &Scope) -> Option<Cover> {
    let (program, rest) = argv.split_first()?;
    let coverable = match class(program) {
        Some(Class::Reads) => is_name(program) && family(program).is_none(),
        // Nobody knows what other programs do with their operands: many run them.
        None => PLAIN.contains(&program.as_str()),
        Some(
            Class::Escalates
            | Class::Leaves
            | Class::System
            | Class::Deletes
            | Class::Overwrites
            | Class::Rights
            | Class::Kills
            | Class::Runs
            | Class::Wraps,
        ) => false,
    };
    if !coverable || rest.len() > WORDS_MAX {
        return None;
    }
    let (options, operands) = split_options(rest);
    let inside = |word: &&String| reach(word, scope) != Reach::Outside && !word.contains("://");
    if !operands.iter().all(inside) || options.iter().any(|word| changes_the_nature(word)) {
        return None;
    }
    let mut what = format!("bash:program:{program}");
    let mut shown = program.clone();
    for option in options {
        what.push('|');
        what.push_str(&quote_word(option));
        shown.push(' ');
        shown.push_str(&brief(option));
    }
    let words = format!(
        "`{shown}` with any other words that stay inside the working directory or a temporary \
         directory, for this session"
    );
    Some(Cover { key: Key { what: what.into(), risk }, words })
}

fn split_options(words: &[String]) -> (Vec<&String>, Vec<&String>) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (before, after) = words.split_at(end);
    let (options, mut operands): (Vec<_>, Vec<_>) =
        before.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    operands.extend(after.iter().skip(1));
    (options, operands)
}

/// A program or subcommand as people name them; also keeps keys unambiguous.
fn is_name(word: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'+');
    word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.bytes().all(plain)
}

/// Whether an argument makes a command delete, force, or run something that it did not before.
fn changes_the_nature(word: &str) -> bool {
    const LONG: &[&str] = &[
        "--command",
        "--compress",
        "--config",
        "--delete",
        "--eval",
        "--exec",
        "--ext",
        "--force",
        "--hard",
        "--mirror",
        "--open-files",
        "--output",
        "--overwrite",
        "--pre",
        "--prune",
        "--purge",
        "--receive-pack",
        "--script",
        "--to-command",
        "--unsafe",
        "--upload-pack",
    ];
    if word.starts_with("--") {
        return LONG.iter().any(|long| word.starts_with(long));
    }
    // `git push +main` forces, `git push :main` deletes.
    if word.starts_with(['+', ':']) {
        return true;
    }
    // Options of one letter may stand together, so each of them counts.
    word.strip_prefix('-')
        .is_some_and(|letters| letters.contains(['c', 'd', 'D', 'f', 'o', 'O', 'x']))
}
