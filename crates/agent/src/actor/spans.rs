//! What a session does, as spans: a turn, and in it model calls, tools and waits for people. A
//! server that exports traces listens for them; for any other this is one look at a level.
//!
//! Attributes are ids, names and counts; never what was said, what a tool was given, or who asked.

use std::collections::HashMap;

use polyloop_session::event::{CallOutcome, Outcome};
use polyloop_session::item::End;
use polyloop_session::wait::Ask;
use polyloop_session::{Event, LogEntry, Seq, State};
use tracing::field::Empty;
use tracing::{Level, Span, span_enabled, trace_span};

use super::decisions::tool;
use crate::meter::{REFUSED_HERE, Running, Tally, decision, status};

/// The name that spans go by; nothing else has it.
pub const TARGET: &str = "polyloop_trace";

/// The spans that are open in one session. A span ends where it is dropped.
#[derive(Default)]
pub(super) struct Spans {
    turn: Option<Span>,
    /// Of calls, tools and waits, by the entry that began each.
    inner: HashMap<Seq, Span>,
}

impl Spans {
    /// To be called before the event is applied, while what it ends is still known.
    pub fn see(&mut self, session: &str, state: &State, entry: &LogEntry, tally: &Tally) {
        if !span_enabled!(target: TARGET, Level::TRACE) {
            return;
        }
        match &entry.event {
            Event::TurnStarted { agent, .. } => {
                let agent = agent.unwrap_or_default().name();
                self.inner.clear();
                self.turn = Some(trace_span!(
                    target: TARGET, parent: None, "turn",
                    polyloop.session = session, polyloop.turn = number(entry.seq.0),
                    polyloop.agent = agent, polyloop.outcome = Empty,
                    otel.status_code = Empty,
                ));
            }
            Event::TurnEnded { outcome, .. } => self.turn_ends(outcome),
            Event::CallStarted { model, .. } => {
                let turn = self.turn(session);
                let span = trace_span!(
                    target: TARGET, parent: &turn, "model_call", otel.kind = "client",
                    polyloop.session = session, polyloop.call = number(entry.seq.0),
                    gen_ai.operation.name = "chat", gen_ai.request.model = &**model,
                    gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty,
                    polyloop.waited_ms = Empty, polyloop.outcome = Empty, otel.status_code = Empty,
                );
                self.inner.insert(entry.seq, span);
            }
            Event::CallEnded { call, outcome, usage } => {
                let Some(span) = self.inner.get(&call.0) else { return };
                if let Some(usage) = usage {
                    span.record("gen_ai.usage.input_tokens", number(usage.input_tokens));
                    span.record("gen_ai.usage.output_tokens", number(usage.output_tokens));
                }
                let went_well = matches!(outcome, CallOutcome::Answered | CallOutcome::Stopped);
                self.ran(call.0, status(outcome), went_well, tally);
            }
            Event::ToolStarted { item, sandboxed, .. } => {
                let (turn, tool) = (self.turn(session), tool(state, *item));
                let span = trace_span!(
                    target: TARGET, parent: &turn, "tool",
                    polyloop.session = session, polyloop.item = number(item.0.0),
                    gen_ai.operation.name = "execute_tool", gen_ai.tool.name = tool,
                    polyloop.sandboxed = sandboxed, polyloop.waited_ms = Empty,
                    polyloop.outcome = Empty, otel.status_code = Empty,
                );
                self.inner.insert(item.0, span);
            }
            Event::SandboxRefused { item, .. } => self.ran(item.0, "sandbox_refused", true, tally),
            Event::ItemCompleted { item, end, .. } => {
                let (word, well) = match end {
                    End::Whole => ("ok", true),
                    End::Failed => ("failed", false),
                    End::Denied => ("denied", true),
                    End::Interrupted => ("interrupted", true),
                    End::Cut | End::Discarded => ("cut", false),
                };
                self.ran(item.0, word, well, tally);
            }
            Event::WaitOpened { ask, .. } => {
                let kind = match ask {
                    Ask::Approval => "approval",
                    Ask::Outside { .. } => "outside",
                    Ask::Question { .. } => "question",
                    Ask::Plan { .. } => "plan",
                };
                let turn = self.turn(session);
                let span = trace_span!(
                    target: TARGET, parent: &turn, "wait",
                    polyloop.session = session, polyloop.wait = number(entry.seq.0), polyloop.kind = kind,
                    polyloop.outcome = Empty, otel.status_code = Empty,
                );
                self.inner.insert(entry.seq, span);
            }
            Event::WaitSettled { wait, answer, .. } => self.ends(wait.0, decision(answer), true),
            Event::WaitWithdrawn { wait, .. } => self.ends(wait.0, "withdrawn", true),
            _ => {}
        }
    }

    /// The turn's span; of one that another process began, what is left of it.
    fn turn(&mut self, session: &str) -> Span {
        let begin = || {
            trace_span!(
                target: TARGET, parent: None, "turn",
                polyloop.session = session, polyloop.continued = true, polyloop.outcome = Empty,
                otel.status_code = Empty,
            )
        };
        self.turn.get_or_insert_with(begin).clone()
    }

    /// A call or a tool, which a gate may have held up or refused.
    fn ran(&mut self, begun: Seq, outcome: &'static str, well: bool, tally: &Tally) {
        let running = tally.running(begun);
        if let (Some(span), Some(running)) = (self.inner.get(&begun), running) {
            let waited = running.waited().as_millis();
            span.record("polyloop.waited_ms", number(u64::try_from(waited).unwrap_or(u64::MAX)));
        }
        match running.is_some_and(Running::was_refused) {
            true => self.ends(begun, REFUSED_HERE, false),
            false => self.ends(begun, outcome, well),
        }
    }

    fn ends(&mut self, begun: Seq, outcome: &'static str, well: bool) {
        if let Some(span) = self.inner.remove(&begun) {
            end(&span, outcome, well);
        }
    }

    fn turn_ends(&mut self, outcome: &Outcome) {
        self.inner.clear();
        let Some(span) = self.turn.take() else { return };
        match outcome {
            Outcome::Completed => end(&span, "completed", true),
            Outcome::Failed { .. } => end(&span, "failed", false),
            Outcome::Interrupted { .. } => end(&span, "interrupted", true),
        }
    }
}

/// What collectors take for a number.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn end(span: &Span, outcome: &'static str, well: bool) {
    span.record("polyloop.outcome", outcome);
    if !well {
        span.record("otel.status_code", "ERROR");
    }
}
