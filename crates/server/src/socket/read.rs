//! The reading half: decodes frames and sees to it that each gets its answer.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use polyloop_agent::sessions::Handle;
use polyloop_dialects::agentloop::file::audit_line;
use polyloop_dialects::{
    Asked, Client, Complaint, Cursor, Dialect, Frame, Manner, Name, Own, Reply, detect,
};
use polyloop_session::wait::Who;
use polyloop_session::{SessionId, Text};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_websockets::{Error, Message, WebSocketStream};

use super::Hello;
use super::outgoing::{Close, Outgoing, RunId, Written};
use super::outlet::Outlet;
use super::pace::Pacing;
use super::stream::Stream;
use super::write;
use crate::access::Visit;
use crate::app::App;
use crate::rate::Sent;
use crate::view::DialectView;

/// Answers that may wait for the writing half before reading pauses.
const OUTGOING_MAX: usize = 64;
/// What they may hold, in units of 1 KiB; a longer frame waits until it is alone.
const OUTGOING_KIB_MAX: u32 = 2 * 1024;
const DRAIN_BUFFER_BYTES: usize = 16 * 1024;
const DRAINED_BYTES_MAX: usize = 64 * 1024 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

pub(super) struct Reader {
    pub app: Arc<App>,
    pub visit: Arc<Visit>,
    pub dialect: Option<&'static dyn Dialect>,
    pub client: Client,
    pub attachments: HashMap<SessionId, Attachment>,
    /// Where the client was in the first session it attaches to.
    pub since: Option<Cursor>,
    pub outgoing: mpsc::Sender<Outgoing>,
    /// Room in the queue, by the bytes of what is in it.
    room: Arc<Semaphore>,
    pub written: Arc<Written>,
    outlet: Arc<Outlet>,
    pub replies: u64,
    /// It is a member of the chat room, under this number.
    pub member: Option<u64>,
    /// A session of this connection alone, which ends with it.
    pub passing: Option<SessionId>,
    /// The client's own id of what it asks just now, for errors about it.
    pub about: Option<Text>,
    /// Its own id of the run it asks for just now.
    pub request: Option<Text>,
    /// The next session it is attached to is introduced first.
    pub greeting: Greeting,
    /// What the client calls modes.
    pub words: Own,
    pub run: Option<OwnRun>,
    /// Requests that wait for the run to end.
    pub waiting: VecDeque<Asked>,
    pub pace: Pacing,
}

/// A session that the client is attached to, or was.
pub(super) struct Attachment {
    pub handle: Handle<DialectView>,
    pub attached: bool,
    pub since: Option<Cursor>,
    /// The client was attached before, and knows what is still asked.
    pub knows: bool,
}

/// How one who comes to a session is greeted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Greeting {
    #[default]
    None,
    /// With what the session is like.
    Init,
    /// The same, and that it is open, as was asked.
    InitAndActive,
}

/// The run that the client asked for and waits for.
pub(super) struct OwnRun {
    pub id: RunId,
    /// The session is the run's own.
    pub alone: bool,
}

/// The connection must end.
pub(super) struct Gone;

pub(super) async fn serve(
    app: Arc<App>,
    (mut socket, outlet): (WebSocketStream<Stream>, Arc<Outlet>),
    hello: Hello,
    client: Arc<Sent>,
    visit: Arc<Visit>,
) {
    let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
    let unanswered = Arc::new(AtomicU32::new(0));
    let closing = app.closing.clone();
    let pace = Pacing::new(app.clients.connection(), client);
    let who = Who {
        via: hello.dialect.map_or("undecided", |dialect| dialect.name()).into(),
        name: hello.name,
        from: hello.from,
    };
    let client = Client { who, session: hello.session, attached: Vec::new(), shown: None };
    let mut reader = Reader {
        app,
        visit: visit.clone(),
        dialect: hello.dialect,
        client,
        attachments: HashMap::new(),
        since: hello.since,
        outgoing,
        room: Arc::new(Semaphore::new(OUTGOING_KIB_MAX as usize)),
        written: outlet.written.clone(),
        outlet: outlet.clone(),
        replies: 0,
        member: None,
        passing: None,
        about: None,
        request: None,
        greeting: Greeting::None,
        words: Own::default(),
        run: None,
        waiting: VecDeque::new(),
        pace,
    };
    let silent_viewer = hello.dialect.is_none() && hello.on_chat_path;
    // A task of its own: what wakes one half does not run the other.
    let writing = tokio::spawn(write::run(outlet, queue, unanswered.clone(), closing, visit));
    // When the writing half ends first, the reading half finds its queue closed and leaves.
    let _ = reader.run(&mut socket, &unanswered, silent_viewer).await;
    reader.leave();
    // Dropping the queue lets the writing half finish what is in it.
    drop(reader);
    if let Ok(Some(until)) = writing.await {
        let _ = tokio::time::timeout_at(until, socket.close()).await;
    }
    drain(socket.into_inner()).await;
}

/// Reads what the client is still sending, for a while: closing a socket with unread data in it
/// would take the close frame away from the client.
async fn drain(mut socket: impl AsyncRead + Unpin) {
    let mut buffer = vec![0; DRAIN_BUFFER_BYTES];
    let read_all = async {
        let mut bytes = 0;
        while bytes < DRAINED_BYTES_MAX {
            match socket.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes += read,
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, read_all).await;
}

impl Reader {
    async fn run(
        &mut self,
        frames: &mut WebSocketStream<Stream>,
        unanswered: &AtomicU32,
        silent_viewer: bool,
    ) -> Result<(), Gone> {
        match self.dialect {
            // What is done seldom is kept apart: a connection that waits is small.
            Some(dialect) => Box::pin(self.decided(dialect)).await?,
            None if silent_viewer => self.join().await?,
            None => {}
        }
        let (written, outgoing) = (self.written.clone(), self.outgoing.clone());
        loop {
            let next = tokio::select! {
                // In this order: the others tell little and seldom, a client may say much.
                biased;
                () = outgoing.closed() => return Err(Gone),
                () = written.news() => {
                    Box::pin(self.news()).await?;
                    continue;
                }
                next = frames.next(), if !self.pace.rests() => next,
                () = self.pace.rested(), if self.pace.rests() => {
                    // It may have answered a ping, which lies unread.
                    unanswered.store(0, Ordering::Relaxed);
                    continue;
                }
            };
            let message = match next {
                None => return Ok(()),
                Some(Ok(message)) => message,
                Some(Err(Error::PayloadTooLong { max_len, .. })) => {
                    let _ = frames.flush().await;
                    let reason = format!("messages may have {max_len} bytes (MAX_MESSAGE_BYTES)");
                    return self.send(Outgoing::Close(Close::TooBig(reason))).await;
                }
                Some(Err(Error::Protocol(_))) => {
                    let _ = frames.flush().await;
                    return self.send(Outgoing::Close(Close::Answered)).await;
                }
                Some(Err(_)) => return Ok(()),
            };
            unanswered.store(0, Ordering::Relaxed);
            self.pace.came(message.as_payload().len());
            if message.is_close() {
                let _ = frames.flush().await;
                return self.send(Outgoing::Close(Close::Answered)).await;
            }
            if message.is_text() || message.is_binary() {
                Box::pin(self.message(&message)).await?;
            } else if message.is_ping() {
                // Reading goes on when the pong is out, so that pings cannot pile up.
                let _ = frames.flush().await;
                self.send(Outgoing::Flush).await?;
            }
        }
    }

    pub(super) async fn send(&self, outgoing: Outgoing) -> Result<(), Gone> {
        self.outgoing.send(outgoing).await.map_err(|_| Gone)
    }

    pub(super) async fn send_frame(
        &self,
        session: Option<&SessionId>,
        frame: Frame,
    ) -> Result<(), Gone> {
        let kib = u32::try_from(frame.text.len().div_ceil(1024)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(kib.min(OUTGOING_KIB_MAX)).await;
        let room = room.map_err(|_| Gone)?;
        let outgoing = match session {
            Some(session) => Outgoing::Frame(session.clone(), Box::new(frame), room),
            None => Outgoing::Plain(Box::new(frame), room),
        };
        self.send(outgoing).await
    }

    async fn message(&mut self, message: &Message) -> Result<(), Gone> {
        let frame: &[u8] = message.as_payload();
        self.visit.received(frame.len());
        let text = std::str::from_utf8(frame);
        let Some(dialect) = self.dialect else {
            return Box::pin(self.first_message(text.ok())).await;
        };
        let Ok(text) = text else {
            return Box::pin(self.unread(dialect, dialect.not_utf8())).await;
        };
        self.decode(dialect, text).await
    }

    async fn decode(&mut self, dialect: &'static dyn Dialect, text: &str) -> Result<(), Gone> {
        (self.about, self.request) = (None, None);
        self.client.shown = self.written.shown();
        self.client.attached = self.attachments.keys().cloned().collect();
        let asked = match dialect.decode(text, &self.client) {
            Ok(asked) => asked,
            Err(complaint) => return Box::pin(self.unread(dialect, complaint)).await,
        };
        if let Some(refused) = self.pace.refuses(&asked.ask) {
            return Box::pin(self.too_fast(dialect, Some(&asked), refused)).await;
        }
        for name in &asked.names {
            match name {
                Name::Client(name) => self.client.who.name = super::clean_name(name),
                Name::Mode(mode, word) => {
                    self.words.call(*mode, word);
                    // Before the session says it: that frame may go out at any moment.
                    self.outlet.standing(|standing, _| standing.call(*mode, word));
                }
            }
        }
        self.ask(dialect, asked).await?;
        (self.about, self.request) = (None, None);
        Ok(())
    }

    /// A frame that is no message of its dialect.
    async fn unread(
        &mut self,
        dialect: &'static dyn Dialect,
        complaint: Complaint,
    ) -> Result<(), Gone> {
        match self.pace.refuses_unread() {
            Some(refused) => self.too_fast(dialect, None, refused).await,
            None => self.complain(dialect, complaint).await,
        }
    }

    /// The dialect of a connection that named none is decided by its first message's type.
    async fn first_message(&mut self, text: Option<&str>) -> Result<(), Gone> {
        #[derive(serde::Deserialize)]
        struct Typed {
            #[serde(rename = "type")]
            kind: String,
        }
        // A list could be read as the fields of a message, but is none.
        let is_object = |text: &str| text.trim_start().starts_with('{');
        let typed = match text.map(serde_json::from_str::<Typed>) {
            Some(Ok(_)) if !text.is_some_and(is_object) => {
                return self.undecided("Invalid JSON: a message is an object").await;
            }
            Some(Ok(typed)) => typed,
            Some(Err(error)) => {
                return self.undecided(&format!("Invalid JSON: {error}")).await;
            }
            None => return self.undecided("Invalid JSON: the frame is not UTF-8").await,
        };
        let Some(dialect) = detect::by_first_message(&typed.kind) else {
            let kind: String = typed.kind.chars().take(80).collect();
            return self.undecided(&format!("Unknown message type: {kind}")).await;
        };
        self.dialect = Some(dialect);
        self.client.who.via = dialect.name().into();
        self.decided(dialect).await?;
        self.decode(dialect, text.unwrap_or("")).await
    }

    async fn undecided(&mut self, error: &str) -> Result<(), Gone> {
        let refused = self.pace.refuses_unread();
        if let Some((limit, _)) = &refused {
            self.app.metrics.refuses(*limit);
        }
        let error = refused.as_ref().map_or(error, |(_, complaint)| &complaint.error);
        self.send_frame(None, Frame::unstamped(detect::undecided_error(error))).await
    }

    /// The dialect is known: the client is attached to the session it named, if any.
    async fn decided(&mut self, dialect: &'static dyn Dialect) -> Result<(), Gone> {
        self.visit.speaks(dialect.name());
        let session = self.client.session.clone();
        self.send(Outgoing::Speaks(dialect, session.clone())).await?;
        match dialect.manner() {
            Manner::Room if self.member.is_none() => self.join().await?,
            Manner::Room => {}
            Manner::OneSession | Manner::ManySessions | Manner::Runs => self.leave_room().await?,
        }
        let Some(session) = session else { return Ok(()) };
        if dialect.manner() == Manner::ManySessions {
            self.greeting = Greeting::Init;
        }
        self.attach(dialect, &session, super::attach::Told::NotYet).await?;
        self.greeting = Greeting::None;
        Ok(())
    }

    async fn join(&mut self) -> Result<(), Gone> {
        let member = self.app.room.join(self.client.session.clone());
        self.member = Some(member.id());
        self.visit.joins(&self.client.who);
        self.send(Outgoing::Joined(member)).await
    }

    async fn leave_room(&mut self) -> Result<(), Gone> {
        match self.member.take() {
            Some(_) => self.send(Outgoing::LeftRoom).await,
            None => Ok(()),
        }
    }

    /// A session ended under the client, who need not say anything to go on with it; or the run it
    /// waited for is over.
    async fn news(&mut self) -> Result<(), Gone> {
        if self.app.closing.is_cancelled() {
            return Ok(());
        }
        let Some(dialect) = self.dialect else { return Ok(()) };
        self.take_detached();
        let lost: Vec<SessionId> = self
            .attachments
            .iter()
            .filter(|(_, a)| !a.attached)
            .map(|(id, _)| id.clone())
            .collect();
        for session in lost {
            // Nobody makes a session anew by having watched one that ended with its connection.
            if let Ok(false) = self.app.sessions.exists(&session).await {
                self.attachments.remove(&session);
                let told = "the session ended with the connection it belonged to";
                let complaint = Complaint::new("The session has ended", told, "session_gone");
                self.reply(dialect, Some(&session), Reply::Complaint(complaint)).await?;
                continue;
            }
            // If it fails again the client knows already.
            let attached =
                self.attach_if_needed(dialect, &session, super::attach::Told::Already).await?;
            // Unless the session only moved: then it would wait for what does not come.
            if !attached && self.app.sessions.kit().peers.is_some() {
                return self.send(Outgoing::Close(Close::StoreAway)).await;
            }
        }
        if let Some(run) = self.written.take_run_ended() {
            self.run_ended(dialect, &run).await?;
        }
        Ok(())
    }

    /// Tells the client what is wrong; chat clients' mistakes are the room's news.
    pub(super) async fn complain(
        &mut self,
        dialect: &'static dyn Dialect,
        complaint: Complaint,
    ) -> Result<(), Gone> {
        let session = self.client.session.clone();
        self.reply(dialect, session.as_ref(), Reply::Complaint(complaint)).await
    }

    /// Answers this client alone, and notes it in the session's file; in a flood there is no note,
    /// and it is no news for the room.
    pub(super) async fn reply(
        &mut self,
        dialect: &'static dyn Dialect,
        session: Option<&SessionId>,
        mut reply: Reply,
    ) -> Result<(), Gone> {
        self.replies += 1;
        if let Reply::Complaint(complaint) = &mut reply {
            complaint.about = complaint.about.take().or(self.about.clone());
            complaint.request = self.request.clone();
        }
        let session = session.filter(|_| dialect.manner() != Manner::Runs);
        let frame = dialect.reply(session, self.replies, &reply);
        let is_flood = self.pace.is_flooded() && matches!(reply, Reply::Complaint(_));
        if let (Reply::Complaint(_), Some(member), false) = (&reply, self.member, is_flood) {
            self.app.room.complain(member, frame);
            return Ok(());
        }
        let noted = session.filter(|_| !is_flood);
        let handle = noted.and_then(|id| self.attachments.get(id)).map(|a| a.handle.clone());
        if let (Some(handle), Reply::Complaint(_) | Reply::ContextInfo(_)) = (handle, &reply) {
            let id = handle.id().clone();
            handle.audit(move |at, last| audit_line(&id, at, last, &reply)).await;
        }
        self.send(Outgoing::Reply(session.cloned(), Box::new(frame))).await
    }

    /// What goes with the connection.
    fn leave(&mut self) {
        let run = self.run.take().filter(|run| run.alone).map(|run| run.id.session);
        for session in self.passing.take().into_iter().chain(run) {
            self.app.room.forget(&session);
            let app = self.app.clone();
            tokio::spawn(async move { app.sessions.discard(&session).await });
        }
    }
}
