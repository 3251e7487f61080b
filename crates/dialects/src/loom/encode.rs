//! A session's entries and growth into the frames of Loom runs.
//!
//! A run is a turn, wherever it was begun. `run` follows one through its nodes, `tool` its tool
//! calls, `state` folds what `values` shows, and `frame` writes it all down. Between turns nothing
//! is sent and only queued messages are remembered, for the run that each will begin.

use std::collections::BTreeMap;

use polyloop_session::event::{Agent, Origin, Outcome, RunOptions, Work};
use polyloop_session::item::Part;
use polyloop_session::state::RESUME_TEXT;
use polyloop_session::{Event, Growth, LogEntry, MessageId, Seq, SessionId, Text, TurnId};

use crate::Encoder;
use crate::conn::Out;
use crate::ids::{IdKind, Ids};

mod frame;
mod run;
mod state;
mod tool;

use frame::Head;
pub(super) use frame::REQUEST_ID_BYTES_MAX;
use run::{Begun, Left, Run};

/// More than a session queues; a damaged log may hold any number.
const QUEUED_MESSAGES_MAX: usize = 4096;

pub(super) struct LoomEncoder {
    session: SessionId,
    ids: Ids,
    /// Messages whose run has not begun.
    queued: BTreeMap<MessageId, Queued>,
    run: Option<Run>,
    /// Of the run that was interrupted last.
    left: Option<Left>,
}

struct Queued {
    text: Text,
    client_ref: Option<Text>,
    can_approve: bool,
    /// It asks for a run, whose asker waits for its end.
    is_run: bool,
    alone: bool,
    verbose: bool,
}

impl Queued {
    fn new(
        content: &[Part],
        origin: &Origin,
        client_ref: Option<&Text>,
        run: Option<&RunOptions>,
    ) -> Queued {
        let text = match content {
            [Part::Text { text }] => text.clone(),
            parts => {
                let texts: Vec<Text> = parts.iter().map(Part::shown).collect();
                texts.join("\n").into()
            }
        };
        Queued {
            text,
            client_ref: client_ref.cloned(),
            can_approve: origin.can_approve,
            is_run: run.is_some(),
            alone: run.is_some_and(|run| run.alone),
            verbose: run.is_some_and(|run| run.verbose),
        }
    }
}

impl LoomEncoder {
    pub(super) fn new(session: &SessionId) -> LoomEncoder {
        let ids = Ids::new(Some(session));
        LoomEncoder {
            session: session.clone(),
            ids,
            queued: BTreeMap::new(),
            run: None,
            left: None,
        }
    }

    fn queue(&mut self, message: MessageId, queued: Queued) {
        self.queued.insert(message, queued);
        if self.queued.len() > QUEUED_MESSAGES_MAX {
            self.queued.pop_first();
        }
    }

    fn begin(&mut self, seq: Seq, work: &Work, agent: Option<Agent>, earlier: Option<u64>) -> Run {
        let (message, queued, text) = match work {
            Work::Message { message } => {
                let queued = self.queued.remove(message);
                let text = queued.as_ref().map(|queued| queued.text.clone());
                (Some(*message), queued, text)
            }
            Work::Resume { .. } => (None, None, Some(RESUME_TEXT.into())),
            Work::Compact { .. } => (None, None, None),
        };
        let id = format!("run-{}", self.ids.id(IdKind::Run, seq));
        let alone = queued.as_ref().is_some_and(|queued| queued.alone);
        let session = if alone { id.clone() } else { self.session.to_string() };
        let request_id = queued.as_ref().and_then(|queued| queued.client_ref.clone());
        Run::new(Begun {
            head: Head::new(TurnId(seq), message, id, request_id, session),
            thread: (!alone).then(|| self.session.clone()),
            text,
            agent: agent.unwrap_or_default(),
            compacts: matches!(work, Work::Compact { .. }),
            verbose: queued.as_ref().is_some_and(|queued| queued.verbose),
            // Who may answer what nobody known began is for the session to say.
            can_approve: queued.is_none_or(|queued| queued.can_approve),
            earlier,
        })
    }
}

impl Encoder for LoomEncoder {
    fn entry(&mut self, entry: &LogEntry, out: &mut Out<'_>) {
        match &entry.event {
            Event::MessageQueued { content, origin, client_ref, run, tokens: _, waits: _ } => {
                let run = run.as_deref();
                let queued = Queued::new(content, origin, client_ref.as_ref(), run);
                self.queue(MessageId(entry.seq), queued);
            }
            Event::MessageDropped { message, by } => {
                if let Some(queued) = self.queued.remove(message).filter(|queued| queued.is_run) {
                    out.message(frame::dropped(*message, queued.client_ref.as_deref(), by));
                }
            }
            Event::TurnStarted { work, agent, earlier, cwd: _ } => {
                let mut run = self.begin(entry.seq, work, *agent, *earlier);
                match work {
                    Work::Message { .. } => self.left = None,
                    Work::Resume { .. } => {
                        self.left.take().into_iter().for_each(|left| run.take_up(left));
                    }
                    Work::Compact { .. } => {}
                }
                run.started(out);
                self.run = Some(run);
            }
            Event::TurnEnded { outcome, usage } => {
                if let Some(mut run) = self.run.take() {
                    run.ended(entry, outcome, *usage, self.ids, out);
                    let interrupted = matches!(outcome, Outcome::Interrupted { .. });
                    if interrupted && !run.begun.compacts {
                        self.left = Some(run.leave());
                    }
                }
            }
            _ => {
                if let Some(run) = &mut self.run {
                    run.entry(entry, out);
                }
            }
        }
    }

    fn growth(&mut self, growth: &Growth, out: &mut Out<'_>) {
        if let Some(run) = &mut self.run {
            run.growth(growth, out);
        }
    }

    fn opening(&mut self, out: &mut Out<'_>) {
        if let Some(run) = &self.run {
            run.opening(out);
        }
    }

    fn pending(&mut self, out: &mut Out<'_>) {
        if let Some(run) = &mut self.run {
            run.pending(out);
        }
    }
}
