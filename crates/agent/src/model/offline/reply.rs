//! Finds out which reply is due, from the prompt alone.
//!
//! The model remembers nothing between two calls: replies that called tools stand in the prompt
//! with their results (also denied, failed and interrupted ones), so counting them gives the
//! place in the script. A reply that was interrupted inside its text goes on with the first line
//! that was not said whole. A failed call leaves nothing in the prompt, so the same prompt fails
//! again; a new message is a new script.

use polyloop_session::Text;
use polyloop_session::history::{AssistantPart, EXPLAINED_PREFIX, Message, SUMMARY_PREFIX};
use polyloop_session::item::Part;
use polyloop_session::state::RESUME_TEXT;
use polyloop_session::strategy::{self, Note};

use super::beats::says;
use super::script::{self, Line, Step};
use super::talk;

/// In a summary, what stands behind this is the rest of a script that was being followed.
pub(super) const LEFT_HEADING: &str = "\nLeft of the script:\n";

/// The steps of the reply to give now.
pub(super) fn due(messages: &[Message]) -> Vec<Step> {
    if let Some(Message::User(parts)) = messages.last()
        && strategy::note(&user_text(parts)) == Some(Note::Results)
    {
        return vec![Step::Say(talk::gathered(&user_text(parts)))];
    }
    let Some(place) = place(messages) else { return vec![Step::Say(talk::no_script())] };
    let mut steps = match place.script {
        Script::Talk => vec![Step::Say(talk::greeting())],
        Script::Steps(mut replies) if place.given < replies.len() => {
            let reply = replies.swap_remove(place.given);
            reply.into_iter().map(|line| line.step).collect()
        }
        Script::Steps(_) => vec![Step::Say(talk::report(last_result(place.since)))],
    };
    let said = said_whole(&steps, place.since);
    let mut at = 0;
    steps.retain(|step| {
        at += 1;
        at > said || matches!(step, Step::Usage { .. })
    });
    if steps.iter().all(|step| matches!(step, Step::Usage { .. })) && said > 0 {
        steps.push(Step::Say(talk::nothing_left()));
    }
    steps
}

/// The lines of the script that are still to be followed; none when it is finished or was talk.
pub(super) fn left(messages: &[Message]) -> Vec<String> {
    let Some(Place { script: Script::Steps(replies), given, since }) = place(messages) else {
        return Vec::new();
    };
    let mut lines: Vec<Line> = Vec::new();
    for (at, reply) in replies.into_iter().skip(given).enumerate() {
        let steps: Vec<Step> = reply.iter().map(|line| line.step.clone()).collect();
        let said = if at == 0 { said_whole(&steps, since) } else { 0 };
        lines.extend(reply.into_iter().skip(said));
    }
    if lines.iter().all(|line| matches!(line.step, Step::Usage { .. })) {
        return Vec::new();
    }
    lines.into_iter().map(|line| line.source).collect()
}

/// All lines of the script that is followed, reply by reply; none when there is only talk.
pub(super) fn all(messages: &[Message]) -> Vec<Vec<String>> {
    let Some(Place { script: Script::Steps(replies), .. }) = place(messages) else {
        return Vec::new();
    };
    let sources = |reply: Vec<Line>| reply.into_iter().map(|line| line.source).collect();
    replies.into_iter().map(sources).collect()
}

/// What a user's message says.
pub(super) fn user_text(parts: &[Part]) -> String {
    let texts: Vec<Text> = parts.iter().map(Part::shown).collect();
    texts.join("\n")
}

pub(super) fn last_result(messages: &[Message]) -> Option<(&Text, bool)> {
    messages.iter().rev().find_map(|message| match message {
        Message::ToolResult { output, is_error, .. } => Some((output, *is_error)),
        Message::User(_) | Message::Assistant(_) => None,
    })
}

struct Place<'a> {
    script: Script,
    /// Replies of it that called tools.
    given: usize,
    since: &'a [Message],
}

enum Script {
    Talk,
    Steps(Vec<Vec<Line>>),
}

/// Where the newest script stands. What the session itself put in a user's mouth is no script:
/// explanations, the wish to go on, and summaries but for what they say is left.
fn place(messages: &[Message]) -> Option<Place<'_>> {
    let (at, script) = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let Message::User(parts) = message else { return None };
        let text = user_text(parts);
        if text.starts_with(EXPLAINED_PREFIX) || text.trim() == RESUME_TEXT {
            return None;
        }
        match strategy::note(&text) {
            None => {}
            Some(Note::Task(task)) => return Some((at, script::parse(task))),
            Some(Note::Understood | Note::Path | Note::Results) => return None,
        }
        if text.starts_with(SUMMARY_PREFIX) {
            let (_, left) = text.split_once(LEFT_HEADING)?;
            return Some((at, Some(script::parse(left)?)));
        }
        Some((at, script::parse(&text)))
    })?;
    let since = messages.get(at + 1..).unwrap_or_default();
    let given = since.iter().filter(|message| calls_tools(message)).count();
    let script = script.map_or(Script::Talk, |lines| Script::Steps(script::replies(lines)));
    Some(Place { script, given, since })
}

fn calls_tools(message: &Message) -> bool {
    let Message::Assistant(parts) = message else { return false };
    parts.iter().any(|part| matches!(part, AssistantPart::ToolCall { .. }))
}

/// How many of the steps stand in the prompt already, whole, because their reply was interrupted.
/// Pieces that were cut stand there too, in between; they count for nothing.
fn said_whole(steps: &[Step], since: &[Message]) -> usize {
    let begin = since.iter().rposition(calls_tools).map_or(0, |at| at + 1);
    let mut said = since[begin..].iter().flat_map(|message| match message {
        Message::Assistant(parts) => parts.as_slice(),
        Message::User(_) | Message::ToolResult { .. } => &[],
    });
    let mut whole = 0;
    for (at, step) in steps.iter().enumerate() {
        if matches!(step, Step::Usage { .. }) {
            continue;
        }
        if !said.any(|part| says(step, part)) {
            break;
        }
        whole = at + 1;
    }
    whole
}
