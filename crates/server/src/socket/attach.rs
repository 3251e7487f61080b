//! Attaches a connection to sessions: what it has missed goes out first, then what comes.

use polyloop_agent::actor::{Attached, CommandError, Look, MOVED};
use polyloop_agent::sessions::Handle;
use polyloop_agent::subscriber;
use polyloop_dialects::{Complaint, Cursor, Dialect, Power, Reply, SessionInit, ToolInfo, View};
use polyloop_session::SessionId;

use super::outgoing::{Outgoing, Sight, Subscribed};
use super::read::{Attachment, Gone, Greeting, Reader};
use crate::catch_up::{Batch, CatchUp, Moment};
use crate::view::{DialectKind, DialectView};

/// Sessions that one connection may be attached to.
const ATTACHED_SESSIONS_MAX: usize = 32;

/// Whether the client knows that its session's store fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Already,
    NotYet,
}

impl Reader {
    /// Takes note of sessions that ended under the client.
    pub(super) fn take_detached(&mut self) {
        for (session, place) in self.written.take_detached() {
            if let Some(attachment) = self.attachments.get_mut(&session) {
                attachment.attached = false;
                attachment.since = Some(place);
            }
        }
    }

    pub(super) fn is_attached(&self, session: &SessionId) -> bool {
        self.attachments.get(session).is_some_and(|attachment| attachment.attached)
    }

    /// False when it is not possible now; the client was told why, and its place is kept.
    pub(super) async fn attach_if_needed(
        &mut self,
        dialect: &'static dyn Dialect,
        session: &SessionId,
        told: Told,
    ) -> Result<bool, Gone> {
        self.take_detached();
        if !self.is_attached(session) {
            Box::pin(self.attach(dialect, session, told)).await?;
        }
        Ok(self.is_attached(session))
    }

    pub(super) async fn attach(
        &mut self,
        dialect: &'static dyn Dialect,
        session: &SessionId,
        told: Told,
    ) -> Result<(), Gone> {
        let handle = match self.attachments.get(session) {
            Some(attachment) => attachment.handle.clone(),
            None => self.app.sessions.handle(session.clone(), self.client.who.clone()),
        };
        self.attach_with(dialect, handle, told).await
    }

    /// To the session of a handle, if the connection may have one more.
    pub(super) async fn attach_with(
        &mut self,
        dialect: &'static dyn Dialect,
        handle: Handle<DialectView>,
        told: Told,
    ) -> Result<(), Gone> {
        if let Some(complaint) = self.too_many(handle.id()) {
            return self.reply(dialect, Some(handle.id()), Reply::Complaint(complaint)).await;
        }
        self.attach_by(dialect, handle, told).await
    }

    /// One more session than a connection may have.
    pub(super) fn too_many(&self, session: &SessionId) -> Option<Complaint> {
        let known = self.attachments.contains_key(session);
        if known || self.attachments.len() < ATTACHED_SESSIONS_MAX {
            return None;
        }
        let error = format!(
            "a connection may be attached to {ATTACHED_SESSIONS_MAX} sessions; open another"
        );
        Some(Complaint::new("Too many sessions", error, "too_many_sessions"))
    }

    /// Attaches to the session of a handle, which makes it if it is new.
    pub(super) async fn attach_by(
        &mut self,
        dialect: &'static dyn Dialect,
        handle: Handle<DialectView>,
        told: Told,
    ) -> Result<(), Gone> {
        let session = handle.id().clone();
        let since = match self.attachments.get_mut(&session) {
            Some(attachment) => attachment.since.take(),
            None => self.since.take(),
        };
        let knows = self.attachments.get(&session).is_some_and(|attachment| attachment.knows);
        let attachment = Attachment { handle: handle.clone(), attached: false, since, knows };
        let seq = attachment.since.as_ref().map(|cursor| cursor.seq);
        self.attachments.insert(session.clone(), attachment);
        let presence = subscriber::Presence::Client;
        let power = power(dialect.power());
        let attached = handle.attach(DialectKind(dialect), seq, power, presence).await;
        let caught_up = match attached {
            Ok(attached) => self.catch_up(dialect, &handle, attached).await,
            Err(error) => Err(complaint(&error)),
        };
        match caught_up {
            Ok(done) => done,
            Err(_) if told == Told::Already => Ok(()),
            Err(complaint) => {
                // A client that remembers the last number it saw must not be sent back by this.
                let place = self.attachments.get(&session).and_then(|a| a.since.as_ref());
                if let Some(place) = place.map(|place| place.stamp(&session)) {
                    self.send(Outgoing::Place(session.clone(), place.into())).await?;
                }
                self.reply(dialect, Some(&session), Reply::Complaint(complaint)).await
            }
        }
    }

    async fn catch_up(
        &mut self,
        dialect: &'static dyn Dialect,
        handle: &Handle<DialectView>,
        attached: Attached<DialectView>,
    ) -> Result<Result<(), Gone>, Complaint> {
        let Attached { head, from, live, waiting, subscription } = attached;
        let session = handle.id().clone();
        let since = self.attachments.get(&session).and_then(|a| a.since.clone());
        let greeting = std::mem::take(&mut self.greeting);
        if greeting != Greeting::None {
            // Should the connection break before more comes, the client goes on from the same place.
            let place = match &since {
                Some(cursor) if cursor.seq <= head => cursor.stamp(&session),
                Some(_) | None => Cursor::at(head).stamp(&session),
            };
            if let Err(gone) = self.introduce(dialect, handle, place.as_bytes(), greeting).await? {
                return Ok(Err(gone));
            }
        }
        let moment = Moment { head, from, live, waiting };
        let mut catching_up = CatchUp::new(dialect, handle, moment, since);
        if self.attachments.get(&session).is_some_and(|attachment| attachment.knows) {
            catching_up.leave_out_reminders();
        }
        loop {
            let batch = match catching_up.next().await {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) => return Err(store_complaint(&error.to_string())),
            };
            if let Err(gone) = self.send_batch(&session, batch).await {
                return Ok(Err(gone));
            }
            // Should it break off, the client goes on from here.
            if let Some(attachment) = self.attachments.get_mut(&session) {
                attachment.since = Some(catching_up.place());
            }
        }
        let view = catching_up.into_view();
        if let Some(attachment) = self.attachments.get_mut(&session) {
            attachment.attached = true;
            attachment.since = None;
            attachment.knows = true;
        }
        self.visit.attaches(&session, &self.client.who);
        let (place, sight, handle) = (view.place(), Sight::All, handle.clone());
        let subscribed = Subscribed { session, dialect, subscription, place, sight, handle };
        Ok(self.send(Outgoing::Subscribed(Box::new(subscribed))).await)
    }

    async fn send_batch(&self, session: &SessionId, batch: Batch) -> Result<(), Gone> {
        if let Some((turn, events)) = batch.count {
            self.send(Outgoing::Count(session.clone(), turn, events)).await?;
        }
        for frame in batch.frames {
            self.send_frame(Some(session), frame).await?;
        }
        Ok(())
    }

    /// Watches a session for the sake of one run alone: nothing is sent until it is known which.
    pub(super) async fn watch_own_run(
        &mut self,
        dialect: &'static dyn Dialect,
        handle: &Handle<DialectView>,
    ) -> Result<Result<(), Gone>, Complaint> {
        let (power, presence) = (subscriber::Power::Watch, subscriber::Presence::Client);
        let attached = handle.attach(DialectKind(dialect), None, power, presence).await;
        let Attached { head, subscription, .. } = attached.map_err(|error| complaint(&error))?;
        let session = handle.id().clone();
        let place = View::new(dialect, &session, head).place();
        let (handle_here, knows) = (handle.clone(), true);
        let attachment = Attachment { handle: handle_here, attached: true, since: None, knows };
        self.attachments.insert(session.clone(), attachment);
        self.visit.attaches(&session, &self.client.who);
        let (sight, handle) = (Sight::OwnRun(None), handle.clone());
        let subscribed = Subscribed { session, dialect, subscription, place, sight, handle };
        Ok(self.send(Outgoing::Subscribed(Box::new(subscribed))).await)
    }

    /// The first thing that one who comes to a session is told, at the place where it is.
    async fn introduce(
        &mut self,
        dialect: &'static dyn Dialect,
        handle: &Handle<DialectView>,
        place: &[u8],
        greeting: Greeting,
    ) -> Result<Result<(), Gone>, Complaint> {
        let look = handle.look().await.map_err(|error| complaint(&error))?;
        let active = (greeting == Greeting::InitAndActive).then_some(Reply::SessionActive);
        let init = Reply::SessionInit(Box::new(self.init(look)));
        for reply in [Some(init), active].into_iter().flatten() {
            self.replies += 1;
            let frame = dialect.reply(Some(handle.id()), self.replies, &reply).stamped(place);
            if let Err(gone) = self.send_frame(Some(handle.id()), frame).await {
                return Ok(Err(gone));
            }
        }
        Ok(Ok(()))
    }

    fn init(&self, look: Look) -> SessionInit {
        SessionInit {
            model: look.settings.model,
            cwd: look.settings.cwd,
            tools: self.app.tools.clone(),
            mode: look.mode,
            mode_word: self.words.word(look.mode),
            agent: look.settings.agent.unwrap_or_default(),
            title: look.settings.title,
            todos: look.todos,
            error: None,
        }
    }

    /// Tells a client that has come to a session what it is like.
    pub(super) async fn greet(
        &mut self,
        dialect: &'static dyn Dialect,
        session: &SessionId,
    ) -> Result<(), Gone> {
        let handle = match self.attachments.get(session) {
            Some(attachment) => attachment.handle.clone(),
            None => self.app.sessions.handle(session.clone(), self.client.who.clone()),
        };
        match handle.look().await {
            Ok(look) => {
                let init = self.init(look);
                self.reply(dialect, Some(session), Reply::SessionInit(Box::new(init))).await
            }
            Err(error) => {
                let reply = Reply::Complaint(complaint(&error));
                self.reply(dialect, Some(session), reply).await
            }
        }
    }
}

pub(super) fn power(power: Power) -> subscriber::Power {
    match power {
        Power::Watch => subscriber::Power::Watch,
        Power::Answer => subscriber::Power::Answer,
        Power::Approve => subscriber::Power::Approve,
    }
}

pub(super) fn complaint(error: &CommandError) -> Complaint {
    match error {
        CommandError::Refused(refusal) => Complaint::from(refusal),
        CommandError::Store(why) | CommandError::Failed(why) => store_complaint(why),
        CommandError::Moved => store_complaint(MOVED),
    }
}

pub(crate) fn store_complaint(why: &str) -> Complaint {
    Complaint::new("The session could not be kept", why, "store_failed")
}

/// The tools as clients are told of them.
pub fn tool_infos(specs: &[polyloop_agent::tool::ToolSpec]) -> std::sync::Arc<[ToolInfo]> {
    let info = |spec: &polyloop_agent::tool::ToolSpec| ToolInfo {
        name: spec.name.into(),
        description: (&*spec.description).into(),
        parameters: spec.parameters.value(),
    };
    specs.iter().map(info).collect()
}
