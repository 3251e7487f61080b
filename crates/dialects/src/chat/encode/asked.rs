//! What is asked of people, and what they said to it, in words for a conversation.

use polyloop_session::decide::{EXPIRED_TEXT, NO_ANSWER_TEXT, PLAN_BACK_TEXT};
use polyloop_session::shown;
use polyloop_session::wait::{Answer, Given, Who};

/// A command may be a whole patch; this much of it names it.
const COMMAND_CHARS_MAX: usize = 120;

/// The first line of a text, shortened, as `show` shows it.
pub(super) fn one_line(text: &str, show: impl Fn(&str) -> String) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(COMMAND_CHARS_MAX).collect();
    let cut = if short.len() < text.trim().len() { "…" } else { "" };
    show(&short) + cut
}

/// Who decided what about a command.
pub(super) fn decision(command: &str, answer: &Answer, by: &Who) -> String {
    let (decided, added) = match answer {
        Answer::Approved { instead: Some(_), message, .. } => {
            ("approved with another patch", message.as_deref())
        }
        Answer::Approved { always: true, message, .. } => {
            ("approved for the session", message.as_deref())
        }
        Answer::Approved { message, .. } => ("approved", message.as_deref()),
        // The result of the call says why.
        Answer::Denied { .. } => ("denied", None),
        Answer::Answered { said, .. } => ("answered", said.as_deref()),
    };
    let added = added.map(|said| format!(": {}", one_line(said, shown::prose))).unwrap_or_default();
    format!("{command}: {decided} by {}{added}", by.describe())
}

/// What a user said to a question or a plan: the words, or the labels that were chosen.
pub(super) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Approved { message: Some(message), .. } => message.trim().to_string(),
        Answer::Approved { message: None, .. } => "Approved".to_string(),
        Answer::Denied { message, .. } => match message.trim() {
            // Nobody said these words: they are what the model is told in place of any.
            EXPIRED_TEXT => "(Nobody answered in time.)".to_string(),
            NO_ANSWER_TEXT => "(No answer.)".to_string(),
            PLAN_BACK_TEXT => "Not approved".to_string(),
            said => said.to_string(),
        },
        Answer::Answered { said: Some(said), .. } => said.trim().to_string(),
        Answer::Answered { answers, said: None } => {
            let all: Vec<String> = answers.iter().map(words).collect();
            all.join("\n")
        }
    }
}

fn words(given: &Given) -> String {
    let chosen = given.selected.iter().map(|label| &**label);
    let all: Vec<&str> = chosen.chain(given.text.as_deref()).collect();
    if all.is_empty() { "(no answer)".to_string() } else { all.join(", ") }
}
