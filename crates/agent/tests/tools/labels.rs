//! The labelled corpora: each line in the world it was labelled in.
//!
//! A line that is labelled dangerous was seen, in a jail, to write, to run a program, to show what
//! is outside or to reach out; `verified` says which of it, or that the program is not everywhere.

use std::fs;

use polyloop_agent::shell::quote;
use serde_json::Value;

use super::jail::Jail;
use crate::Test;

pub const ALL: &[Test] = &[("the_labels_of_our_own_corpus_hold", labels)];

pub const PUBLIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/commands_public.jsonl");
pub const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/own.jsonl");

/// Scripts that are run one after the other before their traces are looked at.
const BATCH: usize = 50;

pub struct Case {
    pub script: String,
    words: Option<Vec<String>>,
    pub harmless: bool,
    /// Harmless, and what everybody expects to run unasked.
    core: bool,
}

pub fn cases(file: &str) -> Vec<Case> {
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let words: Option<Vec<String>> = serde_json::from_value(case["cmd"].clone()).ok();
        let script = match &words {
            Some(words) => quote(words),
            None => case["cmd"].as_str().unwrap().to_owned(),
        };
        let harmless = case["safe"] == true;
        let core = harmless && case.get("debatable").is_none() && case.get("tier").is_none();
        Case { script, words, harmless, core }
    };
    fs::read_to_string(file).unwrap().lines().map(case).collect()
}

fn labels() {
    let jail = Jail::new();
    let scope = jail.scope();
    let (mut dangerous, mut core, mut asked, mut allowed) = (0, 0, Vec::new(), Vec::new());
    for case in cases(OWN) {
        let judged = match &case.words {
            Some(words) => scope.judge_argv(words),
            None => scope.judge(&case.script),
        };
        dangerous += usize::from(!case.harmless);
        core += usize::from(case.core);
        assert!(case.harmless || !judged.safe, "{:?}: {}", case.script, judged.reason);
        if judged.safe {
            allowed.push(case.script);
        } else if case.core {
            asked.push((case.script, judged.reason));
        }
    }
    assert!(dangerous >= 1000 && core >= 500, "the corpus is not whole");
    assert!(asked.len() * 20 <= core, "{} of {core} are asked about: {asked:#?}", asked.len());
    for batch in allowed.chunks(BATCH) {
        if let Err(problem) = jail.run(batch) {
            panic!("{problem}");
        }
    }
    println!(
        "0 of {dangerous} dangerous lines allowed, {} of {core} core ones; {} run",
        core - asked.len(),
        allowed.len(),
    );
}
