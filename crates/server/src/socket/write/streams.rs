//! The sessions that a connection sees. While the client keeps up they write to it themselves, each
//! through its door; what is here is for when it does not, and for when they end.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use polyloop_agent::sessions::Handle;
use polyloop_agent::subscriber::{Ending, Subscription};
use polyloop_dialects::{Dialect, Reply};
use polyloop_session::SessionId;

use super::{End, Writer};
use crate::room::Told;
use crate::socket::attach::store_complaint;
use crate::socket::behind::{self, Caught};
use crate::socket::outgoing::{Close, RunId, Sight, Subscribed};
use crate::view::{Bundle, DialectView};

/// A session as this connection sees it.
pub(super) struct Stream {
    session: SessionId,
    dialect: &'static dyn Dialect,
    source: Source,
    sight: Sight,
    handle: Handle<DialectView>,
}

/// Where its frames come from.
enum Source {
    /// As they are made.
    Live(Subscription<Arc<Bundle>>),
    /// From its log: more was made than was taken.
    Behind(BoxFuture<'static, Caught>),
}

/// What comes next from elsewhere.
pub(super) enum Next {
    /// The outlet has something that only this half can see to.
    Help,
    Stream(usize, Result<(), Ending>),
    Caught(usize, Caught),
    Room(Option<Told>),
}

impl Writer {
    pub(super) fn subscribe(&mut self, subscribed: Subscribed) {
        let Subscribed { session, dialect, subscription, place, sight, handle } = subscribed;
        self.leave(&session);
        self.outlet.standing(|standing, _| standing.stamp(&session, &place));
        if let Some((_, named, _)) = &mut self.heartbeats {
            named.get_or_insert_with(|| session.clone());
        }
        let source = Source::Live(subscription);
        self.streams.push(Stream { session, dialect, source, sight, handle });
        self.open(self.streams.len() - 1);
    }

    /// From now on the session writes by itself, whenever nothing waits.
    fn open(&mut self, at: usize) {
        let Some(stream) = self.streams.get_mut(at) else { return };
        let sight = stream.sight;
        if let Source::Live(subscription) = &mut stream.source
            && !sight.waits()
        {
            subscription.open(self.outlet.door(stream.session.clone(), sight));
        }
    }

    pub(super) fn leave(&mut self, session: &SessionId) {
        self.streams.retain(|stream| stream.session != *session);
    }

    /// The run was accepted; it may even have ended.
    pub(super) fn own_run(&mut self, run: RunId) -> Result<(), End> {
        for at in 0..self.streams.len() {
            let stream = &mut self.streams[at];
            if stream.session == run.session && stream.sight.waits() {
                stream.sight = Sight::OwnRun(Some(run.message));
                self.open(at);
            }
        }
        self.outlet.standing(|standing, written| standing.own_run(run, written));
        self.see_run_failed()
    }

    /// The next of any session or of the room; streams whose run is not known yet wait.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if self.outlet.poll_help(cx).is_ready() {
            return Poll::Ready(Next::Help);
        }
        for (at, stream) in self.streams.iter_mut().enumerate() {
            if stream.sight.waits() {
                continue;
            }
            match &mut stream.source {
                Source::Live(subscription) => {
                    if let Poll::Ready(next) = subscription.poll_waiting(cx) {
                        return Poll::Ready(Next::Stream(at, next));
                    }
                }
                Source::Behind(catching_up) => {
                    if let Poll::Ready(caught) = catching_up.as_mut().poll(cx) {
                        return Poll::Ready(Next::Caught(at, caught));
                    }
                }
            }
        }
        match &mut self.member {
            Some(member) => member.poll_next(cx).map(Next::Room),
            None => Poll::Pending,
        }
    }

    pub(super) async fn next(&mut self, at: usize, next: Result<(), Ending>) -> Result<(), End> {
        match next {
            Ok(()) => {}
            Err(Ending::Behind) => {
                self.fall_behind(at);
                return Ok(());
            }
            Err(ending) => return Box::pin(self.detach(at, ending)).await,
        }
        if let Some(Stream { session, sight, source: Source::Live(subscription), .. }) =
            self.streams.get_mut(at)
        {
            // They are in the outlet before the session can write to it again.
            subscription.take(|bundle| self.outlet.feed(session, *sight, &bundle));
        }
        self.written_of(at).await
    }

    /// What was written of a session goes out, and others have their turn.
    async fn written_of(&mut self, at: usize) -> Result<(), End> {
        self.flush().await?;
        if self.streams.len() > 1 && at < self.streams.len() {
            let stream = self.streams.remove(at);
            self.streams.push(stream);
        }
        Ok(())
    }

    /// More came than the client took: from here on it gets what it missed from the log, with what
    /// grew meanwhile in one piece.
    fn fall_behind(&mut self, at: usize) {
        let Some(stream) = self.streams.get_mut(at) else { return };
        let cursor = self.outlet.standing(|standing, _| standing.cursor(&stream.session));
        let catching_up = behind::catch_up(stream.handle.clone(), stream.dialect, cursor);
        stream.source = Source::Behind(catching_up);
    }

    pub(super) async fn caught(&mut self, at: usize, caught: Caught) -> Result<(), End> {
        let (catching_up, batch) = match caught {
            Caught::Some(catching_up, batch) => (catching_up, batch),
            Caught::All(subscription) => {
                if let Some(stream) = self.streams.get_mut(at) {
                    stream.source = Source::Live(subscription);
                }
                self.open(at);
                return Ok(());
            }
            Caught::Failed(why) => return self.detach(at, Ending::Failed(why)).await,
        };
        let Some(stream) = self.streams.get_mut(at) else { return Ok(()) };
        stream.source = Source::Behind(catching_up.go_on());
        let (session, sight) = (stream.session.clone(), stream.sight);
        if let Some((turn, events)) = batch.count {
            self.outlet.standing(|standing, _| standing.count_from(&session, turn, events));
        }
        for frame in batch.frames.iter().filter(|frame| sight.sees(frame)) {
            let put = self.outlet.frame(Some(&session), frame);
            self.together(put).await?;
        }
        self.written_of(at).await
    }

    /// The session ended under the client: it is told, and the reading half attaches it again.
    async fn detach(&mut self, at: usize, ending: Ending) -> Result<(), End> {
        let Stream { session, dialect, .. } = self.streams.remove(at);
        let place = self.outlet.standing(|standing, _| standing.cursor(&session));
        if let Ending::Failed(why) = ending {
            let reply = Reply::Complaint(store_complaint(&why));
            let frame = dialect.reply(Some(&session), 0, &reply);
            self.reply(Some(&session), &frame).await?;
            // The run that the client waits for will have no end that it sees.
            if self.outlet.standing(|standing, _| standing.runs_in(&session)) {
                return Err(End::Close(Close::RunFailed));
            }
        }
        self.outlet.written.detach(session, place);
        Ok(())
    }
}
