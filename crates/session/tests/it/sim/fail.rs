//! Calls that fail, and a conversation that is made shorter: what the log alone cannot tell.

use polyloop_session::event::{CallOutcome, Event, Outcome, Purpose, Work};
use polyloop_session::item::{End, Fault, Opaque};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::{CallId, ItemId, Report};

use super::{Run, Sim};
use crate::it::flaw::Flaw;

impl Sim {
    /// What was open of a call that failed is closed as discarded, and nothing else is.
    pub(super) fn fails(&mut self, report: &Report, events: &[Event]) -> Run {
        let Report::CallFailed { call, fault, .. } = report else { return Ok(()) };
        let Some(turn) = self.state.turn().filter(|turn| turn.calls.contains_key(call)) else {
            return Ok(());
        };
        let open = turn.items.iter().filter(|(_, item)| item.call == *call);
        let open: Vec<ItemId> = open.map(|(id, _)| *id).collect();
        let closed = events.iter().filter_map(|event| match event {
            Event::ItemCompleted { item, end: End::Discarded, .. } => Some(*item),
            _ => None,
        });
        let closed: Vec<ItemId> = closed.collect();
        ensure!(open == closed, "[14] {open:?} were open and {closed:?} discarded");
        let (purpose, stopping) = (turn.calls[call].purpose, turn.stopping.is_some());
        let outcome = events.iter().find_map(|event| match event {
            Event::CallEnded { outcome, .. } => Some(outcome),
            _ => None,
        });
        self.tell_failure(purpose, stopping, fault, outcome);
        Ok(())
    }

    fn tell_failure(
        &mut self,
        purpose: Purpose,
        stopping: bool,
        fault: &Fault,
        outcome: Option<&CallOutcome>,
    ) {
        let heals = !matches!(Flaw::of(fault), None | Some(Flaw::Refused | Flaw::Exhausted));
        match outcome {
            Some(CallOutcome::Retried { fault, .. }) if &*fault.code == TOO_LONG_CODE => {
                self.count("too long");
            }
            Some(CallOutcome::Retried { .. }) if purpose == Purpose::Summarise => {
                self.count("summary made again");
            }
            Some(CallOutcome::Retried { .. }) => self.count("made again"),
            _ if heals && matches!(purpose, Purpose::Explain { .. }) => {
                self.count("explanation not made again");
            }
            _ if heals && stopping => self.count("not made again in a stopping turn"),
            _ if Flaw::of(fault) == Some(Flaw::Exhausted) => self.count("not waited for"),
            Some(CallOutcome::Failed { fault }) if fault.message.contains("(after") => {
                self.count("gave up after retries");
            }
            _ => self.count("failed at once"),
        }
    }

    /// What must go back to the provider is kept as it came.
    pub(super) fn keeps(&self, report: &Report, events: &[Event]) -> Run {
        let came: Vec<Option<&Opaque>> = match report {
            Report::Answered { proposals, .. } => {
                proposals.iter().map(|proposal| proposal.opaque.as_ref()).collect()
            }
            Report::BlockEnded { opaque, .. } => vec![opaque.as_ref()],
            _ => return Ok(()),
        };
        let kept = events.iter().filter_map(|event| match (report, event) {
            (Report::Answered { .. }, Event::ToolProposed { opaque, .. })
            | (Report::BlockEnded { .. }, Event::ItemCompleted { opaque, .. }) => {
                Some(opaque.as_ref())
            }
            _ => None,
        });
        let kept: Vec<Option<&Opaque>> = kept.collect();
        // A summary or an explanation proposes nothing, and a call outlives its block.
        ensure!(kept.is_empty() || kept == came, "[14] of {came:?} is kept {kept:?}");
        Ok(())
    }

    /// A call that is made again waits as long as was said, any other not at all.
    pub(super) fn waits(&self, call: CallId, purpose: Purpose) -> Run {
        let want = match purpose {
            Purpose::Think | Purpose::Summarise => self.audit.delay_ms(),
            _ => 0,
        };
        let open = self.state.turn().and_then(|turn| turn.calls.get(&call));
        let waits = open.map(|open| open.delay_ms);
        ensure!(waits == Some(want), "[14] {call} waits {waits:?} ms, the log says {want}");
        Ok(())
    }

    /// The tokens that a compaction tells of are those of the prompt, before and after it.
    pub(super) fn measured(&mut self, event: &Event, before: u64) -> Run {
        let (tokens_before, tokens_after) = match event {
            Event::Compacted { tokens_before, tokens_after, .. }
            | Event::Trimmed { tokens_before, tokens_after, .. } => (*tokens_before, *tokens_after),
            _ => return Ok(()),
        };
        let (told, are) = ((tokens_before, tokens_after), (before, self.state.line().used()));
        ensure!(told == are, "[15] tokens are {are:?}, told {told:?}");
        if matches!(event, Event::Trimmed { .. }) {
            return Ok(());
        }
        let aside = self.state.turn().is_some_and(|turn| !turn.is_compaction());
        self.count(if aside { "compacted inside a turn" } else { "compacted on request" });
        Ok(())
    }

    /// How a conversation that did not fit ends.
    pub(super) fn tell_end(&mut self, event: &Event) {
        let Event::TurnEnded { outcome: Outcome::Failed { fault }, .. } = event else { return };
        let Some(turn) = self.state.turn() else { return };
        if &*fault.code == TOO_LONG_CODE && !matches!(turn.work, Work::Compact { .. }) {
            let compacted = self.log.iter().rev().take_while(|entry| entry.seq > turn.id.0);
            let mut compacted = compacted.map(|entry| &entry.event);
            let again = compacted.any(|event| matches!(event, Event::Compacted { .. }));
            self.count(if again { "too long again" } else { "no summary made room" });
        }
    }
}
