//! Keeps a performer from beginning before there is room for it. A session that waits for long is
//! told so; whoever is stopped meanwhile stops at once.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_session::event::Level;
use polyloop_session::{Report, SessionId, Text};
use tokio_util::sync::CancellationToken;

use super::{Busy, Entry, Gate, Kind, Permit, Waiting};
use crate::perform::Performed;

/// Whoever waits for less need not know.
const TOLD_AFTER: Duration = Duration::from_secs(1);
const QUEUED_CODE: &str = "queued";

pub(crate) struct Behind {
    pub gate: Gate,
    pub session: SessionId,
    /// How long to stay away from the gate first, without a permit.
    pub delay: Duration,
    pub stop: CancellationToken,
    /// What is reported if it is stopped before it begins.
    pub stopped: Box<dyn FnOnce() -> Report + Send>,
    /// What is reported if too many wait already; the text says so.
    pub full: Box<dyn FnOnce(String) -> Report + Send>,
}

/// Begins as soon as there is room, which is at once as a rule.
pub(crate) fn behind(
    behind: Behind,
    begin: impl FnOnce(Permit) -> BoxStream<'static, Performed> + Send + 'static,
) -> BoxStream<'static, Performed> {
    let at = match behind.delay.is_zero() {
        true => match behind.gate.enter(&behind.session) {
            Entry::In(permit) => return begin(permit),
            entry => At::Gate(Some(entry)),
        },
        false => At::Away,
    };
    behind.gate.passage.held();
    let before = Before { behind, begin, at };
    stream::unfold(Some(before), |before| async move { before?.next().await }).flatten().boxed()
}

struct Before<B> {
    behind: Behind,
    begin: B,
    at: At,
}

enum At {
    Away,
    Gate(Option<Entry>),
    Queue { waiting: Waiting, tell: bool },
}

impl<B: FnOnce(Permit) -> BoxStream<'static, Performed>> Before<B> {
    /// What is to be told next, and what comes after that; the last of it is the performer.
    async fn next(mut self) -> Option<(BoxStream<'static, Performed>, Option<Before<B>>)> {
        loop {
            let stop = self.behind.stop.clone();
            self.at = match self.at {
                At::Away => tokio::select! {
                    biased;
                    () = stop.cancelled() => return last((self.behind.stopped)()),
                    () = tokio::time::sleep(self.behind.delay) => At::Gate(None),
                },
                At::Gate(entry) => {
                    let enter = || self.behind.gate.enter(&self.behind.session);
                    match entry.unwrap_or_else(enter) {
                        Entry::In(permit) => {
                            self.behind.gate.passage.let_through();
                            return Some(((self.begin)(permit), None));
                        }
                        Entry::Full(busy) => {
                            self.behind.gate.passage.refused();
                            return last((self.behind.full)(self.behind.gate.full_text(busy)));
                        }
                        Entry::Waits(waiting) => At::Queue { tell: waiting.is_first, waiting },
                    }
                }
                At::Queue { mut waiting, tell } => tokio::select! {
                    biased;
                    () = stop.cancelled() => return last((self.behind.stopped)()),
                    permit = &mut waiting => {
                        self.behind.gate.passage.let_through();
                        return Some(((self.begin)(permit), None));
                    }
                    () = tokio::time::sleep(TOLD_AFTER), if tell => {
                        let told = once(self.behind.gate.queued());
                        let at = At::Queue { waiting, tell: false };
                        return Some((told, Some(Before { at, ..self })));
                    }
                },
            };
        }
    }
}

fn once(report: Report) -> BoxStream<'static, Performed> {
    stream::once(std::future::ready(Performed::Report(report))).boxed()
}

fn last<B>(report: Report) -> Option<(BoxStream<'static, Performed>, Option<Before<B>>)> {
    Some((once(report), None))
}

impl Gate {
    /// What runs here, in words, and what says how much of it may.
    fn words(&self) -> (&'static str, &'static str) {
        match self.shared.kind {
            Kind::Calls => ("model calls", "MAX_MODEL_CALLS"),
            Kind::Processes => ("commands", "MAX_PROCESSES"),
        }
    }

    fn queued(&self) -> Report {
        let (what, setting) = self.words();
        let Busy { running, waiting } = self.busy();
        let text = format!(
            "The server is busy: {running} {what} run ({setting}) and {waiting} wait, one of this \
             session among them; it goes on by itself"
        );
        let (level, code) = (Level::Info, Text::from(QUEUED_CODE));
        Report::Noticed { level, code, text: text.into() }
    }

    fn full_text(&self, busy: Busy) -> String {
        let (what, setting) = self.words();
        let Busy { running, waiting } = busy;
        format!(
            "The server is overloaded: {running} {what} run ({setting}) and {waiting} wait \
             (MAX_WAITING); try again later"
        )
    }
}
