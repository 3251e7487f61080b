//! Reads a user's message as a script: one step a line.
//!
//! Pure and total: a step that cannot be read becomes a text that says what is wrong with it, so
//! that whoever wrote it is told. Which lines make one reply is decided here too; which reply is
//! due is not.

use std::time::Duration;

use polyloop_session::Text;
use serde::Serialize;

/// Lines a script may have, empty ones not counted.
pub const SCRIPT_LINES_MAX: usize = 1_000;
pub const SCRIPT_BYTES_MAX: usize = 4 * 1024 * 1024;
pub const STREAM_CHUNKS_MAX: u64 = 1_000_000;
pub const STREAM_CHUNK_BYTES_MAX: u64 = 1024 * 1024;
/// What all `stream:` lines of one script may send together.
pub const STREAM_BYTES_MAX: u64 = 64 * 1024 * 1024;
pub const STREAM_DELAY_MS_MAX: u64 = 60_000;

/// Bytes of a bad value that are repeated to its author.
const QUOTE_BYTES_MAX: usize = 60;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// The line as a script would have it: its word, and `&` where it belongs to the line above.
    pub source: String,
    pub joined: bool,
    pub step: Step,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Think(Text),
    Say(Text),
    Stream(Numbers),
    Call { name: Text, args: Text },
    Usage { input_tokens: u64, output_tokens: u64 },
    Fail(Failure),
    Cut,
}

/// A text of numbered words, sent in equal chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub chunks: u64,
    pub chunk_bytes: u64,
    pub delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    TooManyRequests,
    ServerError,
    Disconnect,
    Hang,
    Garbage,
}

#[derive(Clone, Copy)]
enum Word {
    Think,
    Say,
    Run,
    Tool,
    Ask,
    Plan,
    Stream,
    Usage,
    Fail,
    Cut,
}

const WORDS: [(&str, Word); 10] = [
    ("think", Word::Think),
    ("say", Word::Say),
    ("run", Word::Run),
    ("tool", Word::Tool),
    ("ask", Word::Ask),
    ("plan", Word::Plan),
    ("stream", Word::Stream),
    ("usage", Word::Usage),
    ("fail", Word::Fail),
    ("cut", Word::Cut),
];

const FAILURES: [(&str, Failure); 5] = [
    ("429", Failure::TooManyRequests),
    ("500", Failure::ServerError),
    ("disconnect", Failure::Disconnect),
    ("hang", Failure::Hang),
    ("garbage", Failure::Garbage),
];

/// `None` when no line is a step: plain talk. In a script, a line that is no step is said.
pub(super) fn parse(text: &str) -> Option<Vec<Line>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if !lines.clone().any(|line| split(line).word.is_some()) {
        return None;
    }
    let count = lines.clone().count();
    if count > SCRIPT_LINES_MAX || text.len() > SCRIPT_BYTES_MAX {
        let bytes = text.len();
        return Some(vec![said(format!(
            "This script has {count} lines and {bytes} bytes; I follow at most \
             {SCRIPT_LINES_MAX} lines and {SCRIPT_BYTES_MAX} bytes. Send me a shorter one."
        ))]);
    }
    let mut stream_bytes_left = STREAM_BYTES_MAX;
    Some(lines.map(|line| parse_line(line, &mut stream_bytes_left)).collect())
}

/// Parts a script into replies. A reply goes on to the first line that calls a tool, with the `&`
/// lines behind it, or to a line that fails; the last one may be text alone.
pub(super) fn replies(lines: Vec<Line>) -> Vec<Vec<Line>> {
    let mut replies = Vec::new();
    let mut open: Vec<Line> = Vec::new();
    for line in lines {
        if is_full(&open) && !line.joined {
            replies.push(std::mem::take(&mut open));
        }
        open.push(line);
    }
    if !open.is_empty() {
        replies.push(open);
    }
    replies
}

fn is_full(reply: &[Line]) -> bool {
    reply.iter().fold(false, |full, line| match line.step {
        Step::Call { .. } | Step::Fail(_) => true,
        // It takes the call that it cuts along.
        Step::Cut => false,
        Step::Think(_) | Step::Say(_) | Step::Stream(_) | Step::Usage { .. } => full,
    })
}

struct Split<'a> {
    joined: bool,
    word: Option<Word>,
    /// What follows the word, or the whole line when there is none.
    value: &'a str,
}

fn split(line: &str) -> Split<'_> {
    let joined = line.starts_with('&');
    let rest = line.strip_prefix('&').unwrap_or(line).trim();
    let found = rest.split_once(':').and_then(|(name, value)| {
        let known = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(name))?;
        Some((known.1, value.trim()))
    });
    match found {
        Some((word, value)) => Split { joined, word: Some(word), value },
        None => Split { joined, word: None, value: rest },
    }
}

fn parse_line(line: &str, stream_bytes_left: &mut u64) -> Line {
    let Split { joined, word, value } = split(line);
    let Some(word) = word else {
        let and = if joined { "&" } else { "" };
        let step = Step::Say(unescaped(value).into());
        return Line { source: format!("{and}say: {value}"), joined, step };
    };
    let step = match word {
        Word::Think => Ok(Step::Think(unescaped(value).into())),
        Word::Say => Ok(Step::Say(unescaped(value).into())),
        Word::Run => Ok(call("bash", &Run { command: &unescaped(value) })),
        Word::Tool => tool(value),
        Word::Ask => ask(value),
        Word::Plan => Ok(call("exit_plan_mode", &Plan { plan: &unescaped(value) })),
        Word::Stream => stream(value, stream_bytes_left),
        Word::Usage => usage(value),
        Word::Fail => fail(value),
        Word::Cut => Ok(Step::Cut),
    };
    let step = step.unwrap_or_else(|wrong| Step::Say(wrong.into()));
    Line { source: line.to_owned(), joined, step }
}

fn said(text: String) -> Line {
    Line { source: format!("say: {text}"), joined: false, step: Step::Say(text.into()) }
}

#[derive(Serialize)]
struct Run<'a> {
    command: &'a str,
}

#[derive(Serialize)]
struct Plan<'a> {
    plan: &'a str,
}

#[derive(Serialize)]
struct Questions<'a> {
    questions: [Question<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    header: &'a str,
    question: &'a str,
    options: Vec<Choice<'a>>,
    multi_select: bool,
}

#[derive(Serialize)]
struct Choice<'a> {
    label: &'a str,
    description: &'a str,
}

fn call(name: &str, args: &impl Serialize) -> Step {
    // Structs of strings always have a JSON form.
    let args = serde_json::to_string(args).unwrap_or_default();
    Step::Call { name: name.into(), args: args.into() }
}

fn tool(value: &str) -> Result<Step, String> {
    let (name, args) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    if name.is_empty() {
        return Err("tool: the name is missing; write for example tool: ls {\"path\":\".\"}".into());
    }
    // Sent as it stands, also when it is no JSON: what then happens can be tried too.
    let args = if args.trim().is_empty() { "{}" } else { args.trim() };
    Ok(Step::Call { name: name.into(), args: args.into() })
}

fn ask(value: &str) -> Result<Step, String> {
    let value = unescaped(value);
    let mut parts = value.split('|').map(str::trim).filter(|part| !part.is_empty());
    let Some(question) = parts.next() else {
        return Err("ask: the question is missing; write for example \
                    ask: Which colour? | red | blue"
            .into());
    };
    let options = parts.map(|label| Choice { label, description: "" }).collect();
    let question = Question { header: "Question", question, options, multi_select: false };
    Ok(call("ask_user", &Questions { questions: [question] }))
}

fn stream(value: &str, bytes_left: &mut u64) -> Result<Step, String> {
    let form = "use stream: <chunks> <bytes> <delay ms>, for example stream: 20 12 50";
    let numbers = numbers(value);
    let (chunks, chunk_bytes, delay_ms) = match numbers.as_deref() {
        Some([chunks, bytes]) => (*chunks, *bytes, 0),
        Some([chunks, bytes, delay_ms]) => (*chunks, *bytes, *delay_ms),
        _ => return Err(format!("stream: {} is not three numbers; {form}", quoted(value))),
    };
    within("stream: the number of chunks", chunks, 1, STREAM_CHUNKS_MAX)?;
    within("stream: the bytes of a chunk", chunk_bytes, 1, STREAM_CHUNK_BYTES_MAX)?;
    within("stream: the delay in ms", delay_ms, 0, STREAM_DELAY_MS_MAX)?;
    let bytes = chunks.saturating_mul(chunk_bytes);
    let Some(left) = bytes_left.checked_sub(bytes) else {
        return Err(format!(
            "stream: {chunks} chunks of {chunk_bytes} bytes are {bytes} bytes, and {bytes_left} \
             are left of the {STREAM_BYTES_MAX} that one script may stream; ask for fewer"
        ));
    };
    *bytes_left = left;
    Ok(Step::Stream(Numbers { chunks, chunk_bytes, delay: Duration::from_millis(delay_ms) }))
}

fn usage(value: &str) -> Result<Step, String> {
    match numbers(value).as_deref() {
        Some([input_tokens, output_tokens]) => {
            Ok(Step::Usage { input_tokens: *input_tokens, output_tokens: *output_tokens })
        }
        _ => Err(format!(
            "usage: {} is not two numbers; use usage: <in> <out>, for example usage: 1200 80",
            quoted(value)
        )),
    }
}

fn fail(value: &str) -> Result<Step, String> {
    let found = FAILURES.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
    found.map(|(_, failure)| Step::Fail(*failure)).ok_or_else(|| {
        let names: Vec<&str> = FAILURES.iter().map(|(name, _)| *name).collect();
        format!("fail: {} is no failure I know; use one of {}", quoted(value), names.join(", "))
    })
}

fn numbers(value: &str) -> Option<Vec<u64>> {
    value.split_whitespace().map(|number| number.parse().ok()).collect()
}

fn within(what: &str, value: u64, min: u64, max: u64) -> Result<(), String> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(format!("{what} is {value}; use {min} to {max}"))
}

fn quoted(value: &str) -> String {
    let end = value.floor_char_boundary(QUOTE_BYTES_MAX);
    let more = if end < value.len() { "…" } else { "" };
    format!("\"{}{more}\"", &value[..end])
}

/// `\n` is a newline and `\\` a backslash; before anything else a backslash is itself.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        let meant = match (c, chars.peek()) {
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('\\')) => Some('\\'),
            _ => None,
        };
        if meant.is_some() {
            chars.next();
        }
        text.push(meant.unwrap_or(c));
    }
    text
}
