//! Where a session stands, as this server knows it, and what whoever looks is given of that: the
//! same whether the session is written here or followed.

use polyloop_session::context::{self, ContextInfo};
use polyloop_session::event::{Agent, Work};
use polyloop_session::{Event, Live, MessageId, Seq, SessionId, State, Update};

use crate::actor::{Attach, Attached, Beginnings, Kit, Look, Request};
use crate::log::{Log, LogError};
use crate::subscriber::{Audience, View};

pub(crate) struct Stand<'a, V: View> {
    pub id: &'a SessionId,
    pub kit: &'a Kit,
    pub log: &'a dyn Log,
    pub state: &'a State,
    pub live: &'a Live,
    pub turns: &'a [Seq],
    pub audience: &'a mut Audience<V>,
}

impl<V: View> Stand<'_, V> {
    /// Answers who only looks; what else there is to ask is not for here.
    pub(crate) fn tell(&self, request: Request<V>) {
        match request {
            Request::Beginnings { upto, count, reply } => {
                let _ = reply.send(self.beginnings(upto, count));
            }
            Request::ContextInfo { reply } => {
                let _ = reply.send(self.context_info());
            }
            Request::Look { reply } => {
                let _ = reply.send(self.look());
            }
            Request::Shown { reply } => {
                let _ = reply.send((self.state.last_seq(), self.live.growths().collect()));
            }
            _ => {}
        }
    }

    /// Gives a client its place: the head, what is live and the subscription belong to one moment.
    pub(crate) async fn attach(&mut self, ask: Attach<V>) -> Result<Attached<V>, LogError> {
        let head = self.state.last_seq();
        if !self.audience.has(ask.kind) {
            let view = self.view(ask.kind, head).await?;
            self.audience.add(ask.kind, view);
        }
        let from = match ask.since {
            Some(since) => self.turn_start(since.min(head)),
            None => self.opening_start(head),
        };
        let Some(subscription) = self.audience.subscribe(ask.kind, ask.power, ask.presence) else {
            return Err(LogError::store("session", "its view is gone"));
        };
        let live = self.live.growths().collect();
        let queued = self.state.queue().iter().map(|queued| queued.id);
        let waiting = queued.filter(|message| message.0 <= from).collect();
        Ok(Attached { head, from, live, waiting, subscription })
    }

    /// The entry before what is under way, or may be taken up and named again.
    fn opening_start(&self, head: Seq) -> Seq {
        let left = self.state.interrupted().is_some_and(|left| left.agent != Agent::React);
        match self.state.turn().is_some() || left {
            true => self.turn_start(head),
            false => head,
        }
    }

    /// The entry before the turn that was running at `since`, or that it takes up.
    fn turn_start(&self, since: Seq) -> Seq {
        let before = self.turns.partition_point(|turn| *turn <= since);
        let turn = before.checked_sub(1).and_then(|at| self.turns.get(at));
        turn.map_or(Seq::NONE, |turn| turn.before())
    }

    fn beginnings(&self, upto: Seq, count: usize) -> Beginnings {
        let before = self.turns.partition_point(|turn| *turn <= upto);
        let turns: Vec<Seq> = self.turns[..before].iter().rev().take(count).copied().collect();
        let open = self.state.turn().map(|turn| turn.items.keys().copied().collect());
        Beginnings {
            head: self.state.last_seq(),
            open: open.unwrap_or_default(),
            is_all: turns.len() == before,
            turns,
        }
    }

    fn context_info(&self) -> ContextInfo {
        let tokens_max = self.state.tokens_max(&self.kit.limits);
        context::info(self.state, tokens_max, self.kit.limits.strategy)
    }

    fn look(&self) -> Look {
        let settings = self.state.settings().unwrap_or(&self.kit.settings).clone();
        let (mode, closed) = (self.state.mode(), self.state.is_closed());
        Look { settings, mode, closed, todos: self.state.todos().to_vec() }
    }

    /// A view for all clients of a kind, caught up with the running turn.
    async fn view(&mut self, kind: V::Kind, head: Seq) -> Result<V, LogError> {
        let mut after = self.opening_start(head);
        let mut view = V::open(kind, self.id, after);
        for MessageId(seq) in self.named(after, head).await? {
            let named = self.log.read(self.id, seq.before(), seq).await?;
            named.iter().for_each(|entry| view.recall(entry));
        }
        while after < head {
            let page = self.log.read(self.id, after, head).await?;
            page.iter().for_each(|entry| view.skip(entry));
            match page.last() {
                Some(entry) => after = entry.seq,
                None => break,
            }
        }
        for growth in self.live.growths() {
            view.see(&Update::Grew(growth));
        }
        Ok(view)
    }

    /// Messages up to `after` that the turn behind it or a coming one names.
    async fn named(&mut self, after: Seq, head: Seq) -> Result<Vec<MessageId>, LogError> {
        let first = match after < head {
            true => self.log.read(self.id, after, after.next()).await?,
            false => Vec::new(),
        };
        let begun = first.first().and_then(|entry| match entry.event {
            Event::TurnStarted { work: Work::Message { message }, .. } => Some(message),
            _ => None,
        });
        let queued = self.state.queue().iter().map(|queued| queued.id);
        Ok(begun.into_iter().chain(queued).filter(|message| message.0 <= after).collect())
    }
}
