//! Asks the owner, one thing after the other, and passes its answers on.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{Growth, Seq};
use tokio::time::Instant;

use super::{Arrival, Follower, Waiting};
use crate::actor::{CommandError, Request, UndoError};
use crate::log::LogError;
use crate::peers::wire::{self, Answered, Asked, What};
use crate::peers::{ServerId, Unanswered};
use crate::subscriber::View;

/// How long a request waits for somebody who can answer it.
const WAITING_TIME_MAX: Duration = Duration::from_secs(15);

const NOBODY: &str = "no server has the session now, and it cannot be taken over; nothing was done";
const UNKNOWN: &str = "the server that has the session did not answer; look before you repeat";

/// A question that is on its way.
pub(super) struct Asking {
    about: About,
    whom: ServerId,
    answer: BoxFuture<'static, Result<Bytes, Unanswered>>,
}

enum About {
    /// That somebody watches here.
    Watch,
    /// The oldest request that waits.
    Request,
    Note,
}

/// Comes when what is asked is answered, or will not be.
pub(super) async fn answer(asking: &mut Option<Asking>) -> Result<Bytes, Unanswered> {
    match asking {
        Some(asking) => (&mut asking.answer).await,
        None => std::future::pending().await,
    }
}

impl<V: View> Follower<V> {
    pub(super) fn wait(&mut self, request: Box<Request<V>>) {
        let until = Instant::now() + WAITING_TIME_MAX;
        self.waiting.push_back(Waiting { request, until, asked_at: None });
    }

    /// What a client was shown elsewhere may not have come here yet, and would be shown again.
    pub(super) fn arrive(&mut self, request: Box<Request<V>>) {
        let until = Instant::now() + WAITING_TIME_MAX;
        self.arrivals.push(Arrival { request, until, is_asked: false });
        self.ask_again();
    }

    /// Begins with what comes next, unless something is on its way.
    pub(super) fn ask_next(&mut self) {
        if self.asking.is_some() {
            return;
        }
        let Some(owner) = self.owner.clone() else { return };
        let watch = self.watch();
        if self.said != Some(watch) {
            self.said = Some(watch);
            self.arrivals.iter_mut().for_each(|arrival| arrival.is_asked = true);
            let since = self.arrivals.iter().filter_map(Arrival::since).max();
            return self.ask(About::Watch, owner, What::Watch { watch, since });
        }
        let head = self.state.last_seq();
        let Some(first) = self.waiting.front_mut() else { return };
        let Some(what) = what(&first.request) else { return };
        first.asked_at = Some(head);
        self.ask(About::Request, owner, what);
    }

    /// The owner hears again who is here, and tells how far it is.
    pub(super) fn ask_again(&mut self) {
        self.said = None;
    }

    fn ask(&mut self, about: About, whom: ServerId, what: What) {
        let asked = Asked { id: self.birth.id.clone(), from: self.peers.here().clone(), what };
        let Some(body) = wire::written(&asked) else { return };
        let answer = self.answer_of(whom.clone(), body).boxed();
        self.asking = Some(Asking { about, whom, answer });
    }

    /// What another server answers, counted.
    fn answer_of(
        &self,
        whom: ServerId,
        body: Bytes,
    ) -> impl Future<Output = Result<Bytes, Unanswered>> + Send + use<V> {
        let (peers, questioned) = (self.peers.clone(), self.kit.meter.asks_peer());
        async move {
            let answer = peers.ask(&whom, body).await;
            questioned.came_to(&answer);
            answer
        }
    }

    /// Says something to the owner that needs no answer; given up if that is busy.
    pub(super) fn say(&mut self, what: What) {
        if let (None, Some(owner)) = (&self.asking, self.owner.clone()) {
            self.ask(About::Note, owner, what);
        }
    }

    /// Nobody watches here any more; nothing depends on its being heard.
    pub(super) fn bid_farewell(&mut self) {
        let Some(owner) = self.owner.take().filter(|_| self.said.is_some()) else { return };
        let (id, from) = (self.birth.id.clone(), self.peers.here().clone());
        if let Some(body) = wire::written(&Asked { id, from, what: What::Leave }) {
            tokio::spawn(self.answer_of(owner, body));
        }
    }

    pub(super) async fn take_answer(
        &mut self,
        answer: Result<Bytes, Unanswered>,
    ) -> Result<(), LogError> {
        let Some(Asking { about, whom, .. }) = self.asking.take() else { return Ok(()) };
        let answered = match answer {
            Ok(body) => wire::read::<Answered>(&body).ok_or(Unanswered::Silent),
            Err(why) => Err(why),
        };
        match (about, answered) {
            (about, Ok(Answered::NotHere) | Err(Unanswered::Unheard)) => {
                if let (About::Request, Some(first)) = (about, self.waiting.front_mut()) {
                    first.asked_at = None;
                }
                self.not_there(&whom);
            }
            (About::Watch, Ok(Answered::Stands { head, live })) => self.stands(head, live).await?,
            (About::Request, answered) => self.done(answered),
            (About::Watch, _) => self.ask_again(),
            (About::Note, _) => {}
        }
        Ok(())
    }

    /// Where the owner is: what this one does not know yet is in the log, and growth is told.
    async fn stands(&mut self, head: Seq, live: Vec<Growth>) -> Result<(), LogError> {
        if self.state.last_seq() < head {
            self.read_on().await?;
        }
        // Of what has ended since nothing grows.
        live.into_iter().for_each(|growth| self.grow(growth));
        self.audience.deliver();
        if self.state.last_seq() < head {
            // What was read was old: it is looked for again, and they wait.
            return Ok(());
        }
        for arrival in self.arrivals.extract_if(.., |arrival| arrival.is_asked).collect::<Vec<_>>()
        {
            if let Request::Attach { ask, reply } = *arrival.request {
                let attached = self.stand().attach(ask).await;
                let _ = reply.send(attached.map_err(Into::into));
            }
        }
        Ok(())
    }

    fn done(&mut self, answered: Result<Answered, Unanswered>) {
        let Some(Waiting { request, .. }) = self.waiting.pop_front() else { return };
        let unknown = || CommandError::Store(UNKNOWN.into());
        match (*request, answered) {
            (
                Request::Command { reply, .. } | Request::SettleWithPatch { reply, .. },
                Ok(Answered::Recorded(done)),
            ) => {
                // Those who watch here are not told as it ends there.
                let done = done.map_err(|error| match error {
                    CommandError::Failed(why) => CommandError::Store(why),
                    error => error,
                });
                let _ = reply.send(done);
            }
            (Request::Undo { reply, .. }, Ok(Answered::Undone(done))) => {
                let _ = reply.send(done);
            }
            (request, _) => refuse_with(request, unknown()),
        }
    }

    /// Requests that waited too long are told so: they were not heard by anybody.
    pub(super) fn give_up(&mut self) {
        let now = Instant::now();
        let asked = usize::from(matches!(&self.asking, Some(Asking { about: About::Request, .. })));
        while self.waiting.get(asked).is_some_and(|waiting| waiting.until <= now) {
            if let Some(Waiting { request, asked_at, .. }) = self.waiting.remove(asked) {
                refuse(*request, if asked_at.is_some() { UNKNOWN } else { NOBODY });
            }
        }
        for arrival in self.arrivals.extract_if(.., |arrival| arrival.until <= now) {
            refuse(*arrival.request, NOBODY);
        }
    }

    /// Whoever asked must not take the end of this for a sign that nothing was done.
    pub(super) fn refuse_what_was_asked(&mut self) {
        for Waiting { request, asked_at, .. } in self.waiting.drain(..) {
            if asked_at.is_some() {
                refuse(*request, UNKNOWN);
            }
        }
    }

    /// What was asked of a server that is gone will not be answered, and may have been done.
    pub(super) fn forget_asking(&mut self, owner: Option<&ServerId>) {
        self.asking.take_if(|asking| Some(&asking.whom) != owner);
        // Who takes the session over finds out; who asks another one does not.
        let in_doubt = self.asking.is_none()
            && self.waiting.front().is_some_and(|first| first.asked_at.is_some());
        if owner.is_some() && in_doubt {
            self.done(Err(Unanswered::Silent));
        }
    }

    /// What waits, for whoever takes the session over at `head`. Behind a fence nothing of the last
    /// owner comes any more: a request since which nothing happened was not carried out.
    pub(super) fn inherit(&mut self, head: Seq) -> VecDeque<Box<Request<V>>> {
        let mut backlog = VecDeque::new();
        for Waiting { request, asked_at, .. } in self.waiting.drain(..) {
            match asked_at.is_none_or(|asked_at| asked_at == head) {
                true => backlog.push_back(request),
                false => refuse(*request, UNKNOWN),
            }
        }
        backlog.extend(self.arrivals.drain(..).map(|arrival| arrival.request));
        backlog
    }
}

fn what<V: View>(request: &Request<V>) -> Option<What> {
    Some(match request {
        Request::Command { command, .. } => What::Command(command.clone()),
        Request::SettleWithPatch { wait, patch, always, by, .. } => {
            let (wait, patch, always, by) = (*wait, patch.clone(), *always, by.clone());
            What::SettleWithPatch { wait, patch, always, by }
        }
        Request::Undo { which, by, .. } => What::Undo { which: *which, by: by.clone() },
        _ => return None,
    })
}

fn refuse<V: View>(request: Request<V>, why: &str) {
    refuse_with(request, CommandError::Store(why.into()));
}

fn refuse_with<V: View>(request: Request<V>, error: CommandError) {
    match request {
        Request::Command { reply, .. } | Request::SettleWithPatch { reply, .. } => {
            let _ = reply.send(Err(error));
        }
        Request::Undo { reply, .. } => {
            let _ = reply.send(Err(UndoError::from(error)));
        }
        Request::Attach { reply, .. } => {
            let _ = reply.send(Err(error));
        }
        _ => {}
    }
}
