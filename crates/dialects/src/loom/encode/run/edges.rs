//! How a run begins and ends, and what a client that comes in between is told first.

use polyloop_session::LogEntry;
use polyloop_session::event::Outcome;
use polyloop_session::item::Usage;

use super::super::super::short::short;
use super::super::super::wire::{self, Event as Told, Exit, RunEnd};
use super::super::frame::{Node, node_id};
use super::{Changed, ERROR_BYTES_MAX, INTERRUPTED, Run, Span};
use crate::RunPart;
use crate::conn::Out;
use crate::ids::{IdKind, Ids};

const UNKNOWN_FAULT: &str = "The run failed";

impl Run {
    pub(in super::super) fn started(&self, out: &mut Out<'_>) {
        let start = Told::RunStart {
            run_id: self.begun.head.id(),
            message: self.begun.text.as_deref(),
            agent: self.begun.agent.name(),
        };
        out.message(self.message(RunPart::Start, None, &start, out));
    }

    pub(in super::super) fn opening(&self, out: &mut Out<'_>) {
        self.started(out);
        let calls = self.calls.values().map(|call| call.span.node);
        let acts = self.acts.values().map(|act| act.span.node);
        let search = self.search.spans().map(|span| span.node);
        let mut open: Vec<Node> = calls.chain(acts).chain(search).collect();
        open.sort();
        // Several calls may share one.
        open.dedup();
        for node in open {
            let task = self.search.task_at(node);
            let got_node = task.map(|(name, _)| name);
            self.tell(Some(node), &Told::NodeEnter { id: node.name, got_node }, out);
            // Its end is no surprise to whoever knows that it began.
            if let Some((name, true)) = task {
                self.tell(Some(node), &Told::GotNodeStart { id: name }, out);
            }
        }
        for item in self.items.values() {
            self.again(item, out);
        }
    }

    pub(in super::super) fn ended(
        &self,
        entry: &LogEntry,
        outcome: &Outcome,
        usage: Usage,
        ids: Ids,
        out: &mut Out<'_>,
    ) {
        let calls = self.calls.values().map(|call| call.span);
        let acts = self.acts.values().map(|act| act.span);
        let mut open: Vec<Span> = calls.chain(acts).chain(self.search.spans()).collect();
        open.sort_by_key(|span| span.node);
        open.dedup_by_key(|span| span.node);
        match outcome {
            Outcome::Completed => {
                for span in open {
                    self.exit(span, Exit::Ok, entry.at, out);
                    self.changed(span.node, Changed::default(), out);
                }
                self.checkpoint(entry, ids, out);
                self.completed(usage, out);
            }
            Outcome::Failed { fault } => {
                let told = if fault.message.is_empty() { UNKNOWN_FAULT } else { &fault.message };
                let why = short(told, ERROR_BYTES_MAX);
                open.into_iter().for_each(|span| self.exit(span, Exit::Err(&why), entry.at, out));
                out.message(self.begun.head.error(RunPart::Failed, &why));
            }
            Outcome::Interrupted { reason } => {
                let why = Exit::Err(INTERRUPTED);
                open.into_iter().for_each(|span| self.exit(span, why, entry.at, out));
                let told = format!("{INTERRUPTED}: {}", short(reason, ERROR_BYTES_MAX));
                out.message(self.begun.head.error(RunPart::Interrupted, &told));
            }
        }
    }

    /// What is kept of a thread's run; a run without one leaves nothing.
    fn checkpoint(&self, entry: &LogEntry, ids: Ids, out: &mut Out<'_>) {
        let Some(thread) = &self.begun.thread else { return };
        let event = Told::Checkpoint {
            checkpoint_id: &ids.id(IdKind::Entry(0), entry.seq),
            timestamp: &entry.at.0.to_string(),
            step: self.nodes,
            state: self.state.values(self.pending_calls()),
            thread_id: thread.as_str(),
            checkpoint_ns: None,
        };
        self.tell(self.last, &event, out);
    }

    fn completed(&self, usage: Usage, out: &mut Out<'_>) {
        out.message(self.begun.head.end(&RunEnd {
            id: "",
            request_id: None,
            reply: &self.reply.concat(),
            usage: self.state.usage().map(wire::Usage::from),
            total_usage: (usage != Usage::default()).then(|| usage.into()),
            node_id: &node_id(self.last),
            event_id: 0,
        }));
    }
}
