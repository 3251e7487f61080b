//! A call of the provider's own shell tool, as a call of ours.
//!
//! Theirs is a list of words with an environment; ours is a script. The script does exactly what
//! the words would: each is quoted. A call that no script stands for becomes arguments that our
//! tool refuses.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::json::{self, Object};
use crate::model::openai::word;
use crate::shell::quote;

/// Words of plain letters that a shell reads as its own where a command begins.
const RESERVED: [&str; 17] = [
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];
/// What runs a script of its own just as `bash` would.
const SHELLS: [&str; 6] = ["bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"];

#[derive(Serialize)]
#[serde(untagged)]
enum Args {
    Run {
        command: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        workdir: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Without a command, it is refused.
    Refuse { unsupported: String },
}

/// The arguments of `bash`, as JSON, for the `action` of a `local_shell_call`.
pub fn args(action: Option<&Object<'_>>) -> String {
    let nothing = Object::default();
    let action = action.unwrap_or(&nothing);
    let args = match script(action) {
        Ok(command) => Args::Run {
            command,
            workdir: word(action, "working_directory"),
            timeout_ms: action.count("timeout_ms").filter(|ms| *ms > 0),
        },
        Err(unsupported) => Args::Refuse { unsupported },
    };
    // Strings and numbers: nothing here can fail.
    serde_json::to_string(&args).unwrap_or_default()
}

fn script(action: &Object<'_>) -> Result<String, String> {
    let kind = action.text("type").unwrap_or_default();
    if !matches!(&*kind, "exec" | "") {
        return Err(format!("the action {kind:?} is not known"));
    }
    let environment = environment(action)?;
    let words = words(action)?;
    match words.as_slice() {
        // With an environment, the shell that gets it has to be started.
        [shell, flag, script]
            if environment.is_empty()
                && SHELLS.contains(&&**shell)
                && matches!(&**flag, "-c" | "-lc") =>
        {
            Ok(script.clone())
        }
        words => Ok(format!("{environment}{}", quoted(words))),
    }
}

fn words(action: &Object<'_>) -> Result<Vec<String>, String> {
    if let Some(script) = action.text("command") {
        return Ok(vec!["bash".to_owned(), "-c".to_owned(), script]);
    }
    let words = action.list("command").into_iter().map(json::text);
    let words: Option<Vec<String>> = words.collect();
    let words = words.filter(|words| !words.is_empty());
    words.ok_or_else(|| "the command is not a list of words".to_owned())
}

/// `NAME='value' ` for each variable, as it stands before a command.
fn environment(action: &Object<'_>) -> Result<String, String> {
    let Some(given) = action.raw("env") else { return Ok(String::new()) };
    let given: Map<String, Value> =
        serde_json::from_str(given.get()).map_err(|_| "the environment is not an object")?;
    let mut prefix = String::new();
    for (name, value) in &given {
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !first || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("{name:?} cannot be the name of a variable"));
        }
        let value = value.as_str();
        let value = value.ok_or_else(|| format!("the variable {name} is not a string"))?;
        prefix.push_str(&format!("{name}={} ", in_quotes(value)));
    }
    Ok(prefix)
}

/// A command whose words are these and no others.
fn quoted(words: &[String]) -> String {
    match words.split_first() {
        // Where a command stands, more has a meaning: keywords, and `NAME=value`.
        Some((first, rest)) if RESERVED.contains(&&**first) || first.contains('=') => {
            let rest = rest.iter().map(|word| quote(std::slice::from_ref(word)));
            std::iter::once(in_quotes(first)).chain(rest).collect::<Vec<_>>().join(" ")
        }
        _ => quote(words),
    }
}

/// Between single quotes nothing means anything but the quote itself.
fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', r#"'"'"'"#))
}

#[cfg(test)]
mod tests;
