//! Open items: what is shown of them while they grow and when they end.

use std::borrow::Cow;
use std::path::Path;

use polyloop_session::item::{End, FileChange, ItemKind, Operation, ToolResult};
use polyloop_session::policy::Judgement;
use polyloop_session::{Growth, ItemId, Seq, Stream, Text};
use serde_json::Value;

use super::parts::{Parts, stream};
use crate::conn::Out;
use crate::is_asked;
use crate::progress::Manner;
use crate::tools::unified_name;
use crate::unified::wire::{
    AssistantMessage, AssistantReasoning, CallName, CommandOutput, FileChanged, FileOperation,
    Json, ToolCompleted, ToolId, ToolStarted,
};

/// What is thought beside others is followed by what another thinks.
const LINE_END: &str = "\n";

pub(super) enum Item {
    Text {
        shown: Shown,
        /// Shown when it is whole.
        whole: bool,
    },
    Tool {
        name: Text,
        proposal: Option<Proposal>,
    },
}

/// Where the characters of an item are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Message,
    Reasoning,
    Nowhere,
}

/// A call whose arguments are whole.
pub(super) struct Proposal {
    /// Its `ToolProposed`.
    pub at: Seq,
    pub args: Text,
    pub judgement: Box<Judgement>,
    /// It is a question or a plan, which clients are shown as such and not as a call.
    asked: bool,
    /// What a shell was given, if it is one: its output is shown as it comes.
    script: Option<String>,
    pub ran: bool,
}

/// How an item ended, and with what.
pub(super) struct Ended<'e> {
    pub end: End,
    pub text: &'e str,
    pub result: Option<&'e ToolResult>,
}

impl Item {
    /// `manner` is known where its call is.
    pub(super) fn new(kind: &ItemKind, manner: Option<Manner>) -> Item {
        let otherwise = match kind {
            ItemKind::Text => Manner::Said,
            ItemKind::Reasoning | ItemKind::ToolCall { .. } => Manner::Thought,
        };
        let manner = manner.unwrap_or(otherwise);
        let shown = match manner {
            Manner::Said => Shown::Message,
            Manner::Thought | Manner::ThoughtWhole => Shown::Reasoning,
            Manner::Nowhere => Shown::Nowhere,
        };
        match kind {
            ItemKind::Text | ItemKind::Reasoning => {
                Item::Text { shown, whole: manner == Manner::ThoughtWhole }
            }
            ItemKind::ToolCall { name, .. } => Item::Tool { name: name.clone(), proposal: None },
        }
    }

    pub(super) fn grew(&self, growth: &Growth, out: &mut Out<'_>) {
        let shows = match (self, growth.stream) {
            (Item::Text { shown, whole }, Stream::Text) => *shown != Shown::Nowhere && !whole,
            (Item::Tool { proposal, .. }, Stream::Output) => {
                proposal.as_ref().is_some_and(|proposal| proposal.script.is_some())
            }
            // Arguments are shown when they are whole.
            (Item::Text { .. }, Stream::Args | Stream::Output)
            | (Item::Tool { .. }, Stream::Text | Stream::Args) => false,
        };
        if !shows {
            return;
        }
        let Some(fresh) = out.fresh(growth) else { return };
        let end = growth.offset.saturating_add(growth.text.len() as u64);
        let place = (growth.item, growth.stream, end - fresh.len() as u64);
        match self {
            Item::Text { shown, .. } => shown.tell(place, fresh, out),
            Item::Tool { proposal, .. } => {
                let script = proposal.as_ref().and_then(|proposal| proposal.script.as_deref());
                tell_output(place, script.unwrap_or_default(), fresh, out);
            }
        }
    }

    /// The sandbox stopped it, after it printed this: nobody is told so before they have seen it.
    pub(super) fn stopped(&self, id: ItemId, text: &str, out: &mut Parts<'_, '_>) {
        let Item::Tool { proposal: Some(proposal), .. } = self else { return };
        if let Some(command) = proposal.shell()
            && let Some(rest) = out.out.rest_so_far(id, Stream::Output, text)
        {
            let offset = (text.len() - rest.len()) as u64;
            tell_output((id, Stream::Output, offset), command, rest, out.out);
        }
    }

    pub(super) fn completed(
        self,
        id: ItemId,
        ended: &Ended<'_>,
        cwd: Option<&str>,
        out: &mut Parts<'_, '_>,
    ) {
        match self {
            Item::Text { shown, whole } => {
                shown.completed(id, ended.text, out);
                if whole && !ended.text.is_empty() {
                    out.tell(&AssistantReasoning { text: LINE_END });
                }
            }
            // Cut inside its arguments: it was never a call.
            Item::Tool { proposal: None, .. } => {}
            Item::Tool { proposal: Some(proposal), .. } => proposal.completed(id, ended, cwd, out),
        }
    }
}

/// A sentence on the way to an answer. Clients append, so it stands on a line of its own.
pub(super) fn thought(text: &str, out: &mut Parts<'_, '_>) {
    let text = &format!("\n{text}\n");
    out.tell(&AssistantReasoning { text });
}

impl Shown {
    fn tell(self, place: (ItemId, Stream, u64), text: &str, out: &mut Out<'_>) {
        match self {
            Shown::Message => stream(place, &AssistantMessage { text, is_final: false }, out),
            Shown::Reasoning => stream(place, &AssistantReasoning { text }, out),
            Shown::Nowhere => {}
        }
    }

    /// A message of which nothing was streamed is sent whole, as its own end.
    fn completed(self, id: ItemId, whole: &str, out: &mut Parts<'_, '_>) {
        if self == Shown::Nowhere || whole.is_empty() {
            return;
        }
        let fresh = out.out.rest(id, Stream::Text, whole);
        let is_message = self == Shown::Message;
        let last = match fresh {
            Some(fresh) if is_message && fresh.len() == whole.len() => whole,
            Some(fresh) => {
                let place = (id, Stream::Text, (whole.len() - fresh.len()) as u64);
                self.tell(place, fresh, out.out);
                ""
            }
            None => "",
        };
        if is_message {
            out.tell(&AssistantMessage { text: last, is_final: true });
        }
    }
}

impl Proposal {
    pub(super) fn new(
        at: Seq,
        name: &str,
        args: &Text,
        judgement: &Judgement,
        answerable: bool,
    ) -> Proposal {
        let asked = is_asked(judgement, answerable);
        let script = (name == "bash" && !asked).then(|| script(args, judgement));
        let (args, judgement) = (args.clone(), Box::new(judgement.clone()));
        Proposal { at, args, judgement, asked, script, ran: false }
    }

    pub(super) fn tell_started(&self, id: ItemId, name: &str, out: &mut Parts<'_, '_>) {
        if self.asked {
            return;
        }
        out.tell(&ToolStarted {
            tool_name: unified_name(name),
            tool_id: CallName::Ours(ToolId(id)),
            arguments: Json::object(&self.args),
        });
    }

    /// What a shell was given, once it runs.
    fn shell(&self) -> Option<&str> {
        self.script.as_deref().filter(|_| self.ran)
    }

    fn completed(&self, id: ItemId, ended: &Ended<'_>, cwd: Option<&str>, out: &mut Parts<'_, '_>) {
        if self.asked {
            return;
        }
        let exit_code = ended.result.and_then(|result| result.exit_code);
        if let Some(command) = self.shell() {
            if let Some(rest) = out.out.rest(id, Stream::Output, ended.text) {
                let offset = (ended.text.len() - rest.len()) as u64;
                tell_output((id, Stream::Output, offset), command, rest, out.out);
            }
            let (output, tool_id) = ("", ToolId(id));
            out.tell(&CommandOutput { command, output, exit_code, is_streaming: false, tool_id });
        }
        for file in ended.result.iter().flat_map(|result| &result.files) {
            file_changed(file, cwd, out);
        }
        let success = ended.end == End::Whole && matches!(exit_code, None | Some(0));
        let (result, error) = match success {
            true => (Some(ended.output()), None),
            false => (None, Some(ended.error(exit_code))),
        };
        let (result, error) = (result, error.as_deref());
        out.tell(&ToolCompleted { tool_id: CallName::Ours(ToolId(id)), success, result, error });
    }
}

impl Ended<'_> {
    /// What the model is shown, where it differs.
    fn seen(&self) -> Option<&str> {
        self.result.and_then(|result| result.seen.as_deref()).filter(|seen| !seen.is_empty())
    }

    fn output(&self) -> &str {
        if self.text.is_empty() { self.seen().unwrap_or_default() } else { self.text }
    }

    /// Why it did not go well; it is never silent.
    fn error(&self, exit_code: Option<i32>) -> Cow<'_, str> {
        let told = self.seen().or(Some(self.text).filter(|text| !text.is_empty()));
        if let Some(told) = told {
            return told.into();
        }
        match (self.end, exit_code) {
            (End::Denied, _) => "It was not allowed to run.".into(),
            (End::Cut | End::Discarded | End::Interrupted, _) => {
                "It was stopped before its end.".into()
            }
            (End::Whole | End::Failed, Some(code)) => {
                format!("It ended with exit code {code} and no output.").into()
            }
            (End::Whole | End::Failed, None) => "It failed without saying why.".into(),
        }
    }
}

fn tell_output(place: (ItemId, Stream, u64), command: &str, output: &str, out: &mut Out<'_>) {
    let (exit_code, is_streaming, tool_id) = (None, true, ToolId(place.0));
    stream(place, &CommandOutput { command, output, exit_code, is_streaming, tool_id }, out);
}

/// A move is the end of one file and the beginning of another.
pub(super) fn file_changed(file: &FileChange, cwd: Option<&str>, out: &mut Parts<'_, '_>) {
    let mut tell = |path: &str, operation| {
        // A path that is whole already stays as it is.
        let path = Path::new(cwd.unwrap_or_default()).join(path);
        out.tell(&FileChanged { path: path.to_string_lossy(), operation });
    };
    match &file.operation {
        Operation::Create => tell(&file.path, FileOperation::Create),
        Operation::Update => tell(&file.path, FileOperation::Update),
        Operation::Delete => tell(&file.path, FileOperation::Delete),
        Operation::Move { from } => {
            tell(from, FileOperation::Delete);
            tell(&file.path, FileOperation::Create);
        }
    }
}

/// The script that a shell call was given; a model's own shell may have been given words.
fn script(args: &str, judgement: &Judgement) -> String {
    let given: Option<Value> = serde_json::from_str(args).ok();
    let command = given.as_ref().and_then(|args| args.get("command"));
    if let Some(script) = command.and_then(Value::as_str) {
        return script.to_string();
    }
    let words: Vec<&str> = match command.and_then(Value::as_array) {
        Some(words) => words.iter().filter_map(Value::as_str).collect(),
        None => judgement.command.iter().map(|word| &**word).collect(),
    };
    match words.as_slice() {
        ["bash", "-lc", script] => (*script).to_string(),
        words => words.join(" "),
    }
}
