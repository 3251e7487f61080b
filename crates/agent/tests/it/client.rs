//! A client that notes everything it is shown, and minds that it fits together: entries without
//! gap, growth at its place, completions that say what was streamed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use polyloop_agent::actor::{Attached, CommandError, Recorded};
use polyloop_agent::sessions::Handle;
use polyloop_agent::subscriber::{Ending, Power, Presence, Subscription};
use polyloop_session::command::WaitReply;
use polyloop_session::event::Outcome;
use polyloop_session::item::{End, ItemKind};
use polyloop_session::state::Explain;
use polyloop_session::wait::Ask;
use polyloop_session::{
    Command, Event, Growth, ItemId, LogEntry, Raw, Refusal, Seq, State, Stream, Update, WaitId,
    WaitRef,
};

use super::make::{send, settle};
use super::rig::in_time;
use super::view::{Frame, Kind, Seeing};

pub struct Client {
    pub handle: Handle<Seeing>,
    pub subscription: Subscription<Vec<Frame>>,
    /// What came with what was last taken in.
    coming: VecDeque<Frame>,
    pub state: State,
    pub entries: Vec<Arc<LogEntry>>,
    /// All characters of all items, open or not.
    pub shown: BTreeMap<(ItemId, Stream), String>,
    /// Pieces of growth.
    pub growths: usize,
    /// What providers sent besides.
    pub raws: Vec<Raw>,
}

/// What a client is unless a test says otherwise.
pub const APPROVE: Power = Power::Approve;
pub const CLIENT: Presence = Presence::Client;

/// Stands before the id of a process that a script tells of.
pub const PID: &str = "pid ";

/// The session ended under the client, or its store failed under a command.
#[derive(Debug)]
pub struct Broke;

impl Client {
    pub async fn attach(handle: Handle<Seeing>, kind: Kind) -> Result<Client, CommandError> {
        Client::attach_as(handle, kind, APPROVE, CLIENT).await
    }

    pub async fn attach_as(
        handle: Handle<Seeing>,
        kind: Kind,
        power: Power,
        presence: Presence,
    ) -> Result<Client, CommandError> {
        let attaching = handle.attach(kind, None, power, presence);
        let attached = in_time("the attachment", attaching).await?;
        Ok(Client::catch_up(handle, attached, Seq::NONE).await)
    }

    /// Reads all entries after `have` (so that the state is the fold of all when it is none), and
    /// takes what is live.
    pub async fn catch_up(handle: Handle<Seeing>, attached: Attached<Seeing>, have: Seq) -> Client {
        let Attached { head, from: _, live, waiting: _, subscription } = attached;
        let (state, shown) = (State::default(), BTreeMap::new());
        let (entries, growths, raws) = (Vec::new(), 0, Vec::new());
        let coming = VecDeque::new();
        let mut client =
            Client { handle, subscription, coming, state, entries, shown, growths, raws };
        let mut after = have;
        while after < head {
            let page = client.handle.read(after, head).await.unwrap();
            assert!(!page.is_empty(), "nothing to read between {after} and {head}");
            after = page.last().unwrap().seq;
            page.into_iter().for_each(|entry| client.logged(entry));
        }
        assert_eq!(after, head);
        live.into_iter().for_each(|growth| client.grew(&growth));
        client
    }

    pub fn last(&self) -> Seq {
        self.entries.last().map_or(Seq::NONE, |entry| entry.seq)
    }

    pub async fn next(&mut self, what: &str) -> Result<Update, Ending> {
        loop {
            if let Some(Frame(update)) = self.coming.pop_front() {
                self.take(update.clone());
                return Ok(update);
            }
            self.coming = in_time(what, self.subscription.next()).await?.into();
        }
    }

    /// Takes in updates until something holds, which it may do already.
    pub async fn until(
        &mut self,
        what: &str,
        holds: impl Fn(&Client) -> bool,
    ) -> Result<(), Broke> {
        while !holds(self) {
            self.next(what).await.map_err(|_| Broke)?;
        }
        Ok(())
    }

    pub async fn until_idle(&mut self) -> Result<(), Broke> {
        self.until("the end of the turn", Client::is_idle).await
    }

    /// Takes in what is still queued of a session that has ended or will.
    pub async fn until_end(&mut self) -> Ending {
        loop {
            if let Err(ending) = self.next("the end of the session").await {
                return ending;
            }
        }
    }

    fn take(&mut self, update: Update) {
        match update {
            Update::Logged(entry) => self.logged(entry),
            Update::Grew(growth) => self.grew(&growth),
            Update::Raw(raw) => self.raws.push(raw),
        }
    }

    fn logged(&mut self, entry: Arc<LogEntry>) {
        if let Some(last) = self.entries.last() {
            assert_eq!(entry.seq, last.seq.next());
        }
        self.state.apply(&entry);
        match &entry.event {
            Event::ItemCompleted { item, text, .. } => {
                for stream in [Stream::Text, Stream::Output] {
                    let shown = self.shown.get(&(*item, stream));
                    assert!(shown.is_none_or(|shown| **shown == **text), "{text:?}: {shown:?}");
                }
            }
            Event::ToolProposed { item, args, .. } => {
                let shown = self.shown.get(&(*item, Stream::Args));
                assert!(shown.is_none_or(|shown| **shown == **args), "{args:?}: {shown:?}");
            }
            _ => {}
        }
        self.entries.push(entry);
    }

    fn grew(&mut self, growth: &Growth) {
        let shown = self.shown.entry((growth.item, growth.stream)).or_default();
        assert_eq!(growth.offset, shown.len() as u64, "a gap or a repetition: {growth:?}");
        shown.push_str(&growth.text);
        self.growths += 1;
    }

    /// Whether any item was shown with these characters.
    pub fn was_shown(&self, text: &str) -> bool {
        self.shown.values().any(|shown| shown.contains(text))
    }

    pub fn is_idle(&self) -> bool {
        self.state.turn().is_none() && (self.state.queue().is_empty() || self.state.is_paused())
    }

    pub fn wait(&self) -> Option<WaitId> {
        self.state.turn()?.waits.keys().next().copied()
    }

    /// What the oldest wait asks.
    pub fn asked(&self) -> Option<&Ask> {
        self.state.turn()?.waits.values().next().map(|open| &open.ask)
    }

    /// There is a wait, and nothing is being explained.
    pub fn can_decide(&self) -> bool {
        let Some(turn) = self.state.turn() else { return false };
        turn.waits.values().next().is_some_and(|wait| wait.explain == Explain::No)
    }

    /// All completed texts, in order.
    pub fn texts(&self) -> Vec<&str> {
        let is_text = |id: &ItemId| {
            let started = self.entries.iter().find(|entry| entry.seq == id.0);
            started.is_some_and(|entry| {
                matches!(&entry.event, Event::ItemStarted { item: ItemKind::Text, .. })
            })
        };
        let texts = self.entries.iter().filter_map(|entry| match &entry.event {
            Event::ItemCompleted { item, text, .. } if is_text(item) => Some(&**text),
            _ => None,
        });
        texts.collect()
    }

    /// How many entries are like this.
    pub fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.entries.iter().filter(|entry| is(&entry.event)).count()
    }

    /// What follows the mark in all whole lines that tools have printed and that begin with it.
    /// (A shell's profile may print lines of its own.)
    pub fn output(&self, mark: &str) -> Vec<String> {
        let output = self.shown.iter().filter(|((_, stream), _)| *stream == Stream::Output);
        let lines = output.flat_map(|(_, text)| text.split_inclusive('\n'));
        let marked = lines.filter_map(|line| line.strip_suffix('\n')?.strip_prefix(mark));
        marked.map(str::to_owned).collect()
    }

    pub async fn try_command(&self, command: Command) -> Result<Recorded, CommandError> {
        in_time("the answer to a command", self.handle.command(command)).await
    }

    /// What follows from the command was sent before its answer, so it is taken in too.
    pub async fn command(&mut self, command: Command) -> Result<(), Broke> {
        let done = self.try_command(command.clone()).await;
        let mut sent = std::mem::take(&mut self.coming);
        self.subscription.take(|bundle| {
            sent.extend(bundle);
            ControlFlow::Continue(())
        });
        sent.into_iter().for_each(|Frame(update)| self.take(update));
        match done {
            Ok(_) => Ok(()),
            Err(CommandError::Store(_) | CommandError::Failed(_) | CommandError::Moved) => {
                Err(Broke)
            }
            Err(CommandError::Refused(refusal)) => panic!("{command:?}: {refusal}"),
        }
    }

    pub async fn send(&mut self, text: &str) -> Result<(), Broke> {
        self.command(send(text)).await
    }

    /// Answers the oldest wait.
    pub async fn settle(&mut self, reply: WaitReply) -> Result<(), Broke> {
        self.command(settle(WaitRef::Presented, reply)).await
    }
}

pub fn refusal(done: Result<Recorded, CommandError>) -> Refusal {
    match done {
        Err(CommandError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// How items ended, and what they then held.
pub fn endings(client: &Client) -> Vec<(End, &str)> {
    let endings = client.entries.iter().filter_map(|entry| match &entry.event {
        Event::ItemCompleted { end, text, .. } => Some((*end, &**text)),
        _ => None,
    });
    endings.collect()
}

/// How the last turn ended, which has just done so.
pub fn outcome(client: &Client) -> &Outcome {
    match &client.entries.last().unwrap().event {
        Event::TurnEnded { outcome, .. } => outcome,
        other => panic!("the turn has not ended: {other:?}"),
    }
}
