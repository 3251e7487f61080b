//! `polyloop check-command`: says whether a command would run without asking, and why.
//!
//! Judges with the very function that sessions use, and never runs anything.

use std::io::{self, BufRead, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use polyloop_agent::rules::Rules;
use polyloop_agent::shell::{Judged, Scope};
use polyloop_session::policy::{Rule, Says};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::CheckArgs;

/// The longest line that is read whole; of a longer one the rest is thrown away.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// For words that make no sense, as the parser of the command line has it.
const USAGE: u8 = 2;

pub fn run(args: &CheckArgs, start_dir: &Path) -> ExitCode {
    let cwd = args.cwd.as_ref().map_or_else(|| start_dir.to_owned(), |cwd| start_dir.join(cwd));
    if !cwd.is_dir() {
        eprintln!("error: --cwd: {} is not a directory", cwd.display());
        return ExitCode::from(USAGE);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let rules = match &args.rules {
        Some(file) => crate::rules::load(&start_dir.join(file)),
        None => Ok(Rules::default()),
    };
    let rules = match rules {
        Ok(rules) => Arc::new(rules),
        Err(problems) => {
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
            return ExitCode::from(USAGE);
        }
    };
    // As a session has it.
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    let scope = rules.close(Scope::new(&cwd, &[]).with_path(&path), &cwd);
    match &args.script {
        Some(script) => {
            let judged = scope.judge(script);
            let (decision, reason) = match rules.of_command(script, &scope, &cwd, &cwd) {
                Some(Rule { says, line }) => (word(says), format!("by the rule `{line}`")),
                None => (decision(&judged), judged.reason.to_string()),
            };
            // Whoever closed the other end has read enough.
            let _ = writeln!(io::stdout(), "{decision}: {reason}");
            if decision == ALLOW { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        None => match answer(&scope, io::stdin().lock(), io::stdout().lock()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: standard input or output: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

const ALLOW: &str = "allow";
const ASK: &str = "ask";

fn decision(judged: &Judged) -> &'static str {
    if judged.safe { ALLOW } else { ASK }
}

fn word(says: Says) -> &'static str {
    match says {
        Says::Allow => ALLOW,
        Says::Ask => ASK,
        Says::Deny => "deny",
    }
}

/// Answers each line with a line, as it comes.
fn answer(scope: &Scope, mut asked: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        if asked.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let whole = line.ends_with(b"\n") || u64::try_from(line.len()) != Ok(LINE_BYTES_MAX);
        let answer = if whole {
            if line.trim_ascii().is_empty() {
                continue;
            }
            judge_line(scope, &line)
        } else {
            asked.skip_until(b'\n')?;
            problem(Value::Null, &format!("a line is longer than {LINE_BYTES_MAX} bytes"))
        };
        writeln!(answers, "{answer}")?;
        answers.flush()?;
    }
}

/// A script, or the words of a command.
#[derive(Deserialize)]
#[serde(untagged)]
enum Asked {
    Script(String),
    Words(Vec<String>),
}

fn judge_line(scope: &Scope, line: &[u8]) -> Value {
    let fields: Value = match serde_json::from_slice(line) {
        Ok(fields) => fields,
        Err(error) => return problem(Value::Null, &format!("the line is not JSON: {error}")),
    };
    let id = fields.get("id").cloned().unwrap_or(Value::Null);
    let asked = fields.get("cmd").cloned().map(serde_json::from_value);
    let judged = match asked {
        Some(Ok(Asked::Script(script))) => scope.judge(&script),
        Some(Ok(Asked::Words(words))) => scope.judge_argv(&words),
        Some(Err(_)) => return problem(id, "`cmd` must be a script or a list of words"),
        None => return problem(id, "`cmd` is missing; give a script or a list of words"),
    };
    json!({ "id": id, "decision": decision(&judged), "reason": &*judged.reason })
}

/// What cannot be judged would be asked about.
fn problem(id: Value, error: &str) -> Value {
    json!({ "id": id, "decision": "ask", "error": error, "reason": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(lines: &str) -> Vec<Value> {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        answer(&Scope::new(dir.path(), &[]), lines.as_bytes(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn each_line_is_answered_and_bad_ones_say_why() {
        let long = format!("{{\"id\": 8, \"cmd\": \"{}\"}}", "x".repeat(5 * 1024 * 1024));
        let lines = [
            r#"{"id": "a", "cmd": "ls | wc -l"}"#,
            r#"{"id": 2, "cmd": ["ls", "-la"]}"#,
            r#"{"id": 3, "cmd": "touch x"}"#,
            "",
            "nonsense",
            r#"{"id": 5}"#,
            r#"{"id": 6, "cmd": [1]}"#,
            r#"{"id": 7, "cmd": null}"#,
            "[]",
            &long,
            r#"{"id": 9, "cmd": []}"#,
            r#"{"id": 10, "cmd": "echo \u0000\ud83d\ude00"}"#,
            r#"{"id": 11, "cmd": "pwd"}"#,
        ];
        let answers = answers(&lines.join("\n"));
        let told: Vec<(Value, &str, bool)> = answers
            .iter()
            .map(|answer| {
                let error = answer.get("error").is_some();
                (answer["id"].clone(), answer["decision"].as_str().unwrap(), error)
            })
            .collect();
        let want = [
            (json!("a"), "allow", false),
            (json!(2), "allow", false),
            (json!(3), "ask", false),
            (Value::Null, "ask", true),
            (json!(5), "ask", true),
            (json!(6), "ask", true),
            (json!(7), "ask", true),
            (Value::Null, "ask", true),
            (Value::Null, "ask", true),
            (json!(9), "ask", false),
            (json!(10), "ask", false),
            (json!(11), "allow", false),
        ];
        assert_eq!(told, want);
        assert!(answers.iter().all(|answer| !answer["reason"].as_str().unwrap().is_empty()));
    }
}
