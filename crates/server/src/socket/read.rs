//! The reading half: decodes frames, asks the session, attaches to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::stream::SplitStream;
use futures_util::{StreamExt, stream};
use polyloop_agent::actor::{Attached, CommandError};
use polyloop_agent::clock;
use polyloop_agent::log::LogError;
use polyloop_agent::sessions::Handle;
use polyloop_dialects::agentloop::file::audit_line;
use polyloop_dialects::{Ask, Client, Complaint, Cursor, Dialect, Frame, Reply, View, detect};
use polyloop_session::context::{self, ContextInfo};
use polyloop_session::wait::Who;
use polyloop_session::{Command, Seq, State, Update, decide};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio_websockets::{Error, Message, WebSocketStream};

use super::Hello;
use super::write::{self, Close, Outgoing, Written};
use crate::app::App;
use crate::view::{DialectKind, DialectView};

/// Answers that may wait for the writing half before reading pauses.
const OUTGOING_MAX: usize = 64;
/// What they may hold, in units of 1 KiB; a longer frame waits until it is alone.
const OUTGOING_KIB_MAX: u32 = 2 * 1024;
const DRAIN_BUFFER_BYTES: usize = 16 * 1024;
const DRAINED_BYTES_MAX: usize = 64 * 1024 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

struct Reader {
    app: Arc<App>,
    dialect: Option<&'static dyn Dialect>,
    client: Client,
    handle: Option<Handle<DialectView>>,
    since: Option<Cursor>,
    outgoing: mpsc::Sender<Outgoing>,
    /// Room in the queue, by the bytes of what is in it.
    room: Arc<Semaphore>,
    written: Arc<Written>,
    attached: bool,
    replies: u64,
}

/// Whether the client knows that its session's store fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Already,
    NotYet,
}

/// The connection must end.
struct Gone;

pub(super) async fn serve<S>(app: Arc<App>, socket: WebSocketStream<S>, hello: Hello)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sink, mut frames) = socket.split();
    let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
    let unanswered = Arc::new(AtomicU32::new(0));
    let written = Arc::new(Written::default());
    let closing = app.closing.clone();
    let who = Who {
        via: hello.dialect.map_or("undecided", |dialect| dialect.name()).into(),
        name: hello.name.map(Into::into),
    };
    let mut reader = Reader {
        app,
        dialect: hello.dialect,
        client: Client { who, session: hello.session, shown: None },
        handle: None,
        since: hello.since,
        outgoing,
        room: Arc::new(Semaphore::new(OUTGOING_KIB_MAX as usize)),
        written: written.clone(),
        attached: false,
        replies: 0,
    };
    let writing = write::run(sink, queue, unanswered.clone(), written, closing);
    let reading = async {
        let _ = reader.run(&mut frames, &unanswered).await;
        // Dropping the queue lets the writing half finish what is in it.
        drop(reader);
    };
    tokio::pin!(writing);
    let sink = tokio::select! {
        sink = &mut writing => sink,
        () = reading => writing.await,
    };
    if let Ok(socket) = frames.reunite(sink) {
        drain(socket.into_inner()).await;
    }
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
    async fn run<S>(
        &mut self,
        frames: &mut SplitStream<WebSocketStream<S>>,
        unanswered: &AtomicU32,
    ) -> Result<(), Gone>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.dialect.is_some() && self.client.session.is_some() {
            self.attach(Told::NotYet).await?;
        }
        let written = self.written.clone();
        loop {
            let next = tokio::select! {
                next = frames.next() => next,
                // The session ended under its client, who need not say anything to go on with it.
                () = written.detached() => {
                    if !self.app.closing.is_cancelled() {
                        // If it fails again the client knows already.
                        self.attach_if_needed(Told::Already).await?;
                    }
                    continue;
                }
            };
            let message = match next {
                None => return Ok(()),
                Some(Ok(message)) => message,
                Some(Err(Error::PayloadTooLong { max_len, .. })) => {
                    let reason = format!("messages may have {max_len} bytes (MAX_MESSAGE_BYTES)");
                    return self.send(Outgoing::Close(Close::TooBig(reason))).await;
                }
                Some(Err(Error::Protocol(_))) => {
                    return self.send(Outgoing::Close(Close::Answered)).await;
                }
                Some(Err(_)) => return Ok(()),
            };
            unanswered.store(0, Ordering::Relaxed);
            if message.is_close() {
                return self.send(Outgoing::Close(Close::Answered)).await;
            }
            if message.is_text() || message.is_binary() {
                self.message(&message).await?;
            } else if message.is_ping() {
                // The pong is queued; reading goes on when it is out, so that pings cannot pile up.
                self.send(Outgoing::Flush).await?;
            }
        }
    }

    async fn send(&self, outgoing: Outgoing) -> Result<(), Gone> {
        self.outgoing.send(outgoing).await.map_err(|_| Gone)
    }

    async fn send_frame(&self, frame: Frame) -> Result<(), Gone> {
        let kib = u32::try_from(frame.text.len().div_ceil(1024)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(kib.min(OUTGOING_KIB_MAX)).await;
        self.send(Outgoing::Frame(frame, room.map_err(|_| Gone)?)).await
    }

    async fn message(&mut self, message: &Message) -> Result<(), Gone> {
        let frame: &[u8] = message.as_payload();
        let text = std::str::from_utf8(frame);
        let Some(dialect) = self.dialect else { return self.first_message(text.ok()).await };
        let Ok(text) = text else {
            let complaint =
                Complaint::new("Invalid message format", "the frame is not UTF-8", "not_utf8");
            return self.reply(dialect, Reply::Complaint(complaint)).await;
        };
        self.decode(dialect, text).await
    }

    async fn decode(&mut self, dialect: &'static dyn Dialect, text: &str) -> Result<(), Gone> {
        self.client.shown = self.written.shown();
        match dialect.decode(text, &self.client) {
            Ok(ask) => self.ask(dialect, ask).await,
            Err(complaint) => self.reply(dialect, Reply::Complaint(complaint)).await,
        }
    }

    /// The dialect of a connection that named none is decided by its first message's type.
    async fn first_message(&mut self, text: Option<&str>) -> Result<(), Gone> {
        #[derive(serde::Deserialize)]
        struct Typed {
            #[serde(rename = "type")]
            kind: String,
        }
        let typed = match text.map(serde_json::from_str::<Typed>) {
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
        if self.client.session.is_some() {
            self.attach(Told::NotYet).await?;
        }
        self.decode(dialect, text.unwrap_or("")).await
    }

    async fn undecided(&mut self, error: &str) -> Result<(), Gone> {
        self.send_frame(Frame::unstamped(detect::undecided_error(error))).await
    }

    async fn ask(&mut self, dialect: &'static dyn Dialect, ask: Ask) -> Result<(), Gone> {
        if self.handle.is_none() && !matches!(ask, Ask::Command(Command::Send(_))) {
            return match without_session(&self.app, ask) {
                Some(reply) => self.reply(dialect, reply).await,
                None => Ok(()),
            };
        }
        // Subscribe first: whoever asks must see what comes of it.
        if !self.attach_if_needed(Told::NotYet).await? {
            return Ok(());
        }
        let Some(handle) = self.handle.clone() else { return Ok(()) };
        let done = match ask {
            Ask::Command(command) => handle.command(command).await,
            Ask::SettleWithPatch { wait, patch, always, by } => {
                handle.settle_with_patch(wait, patch, always, by).await
            }
            Ask::ContextInfo => match handle.context_info().await {
                Ok(info) => return self.reply(dialect, Reply::ContextInfo(info)).await,
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(()) => Ok(()),
            Err(error) => self.reply(dialect, Reply::Complaint(complaint(&error))).await,
        }
    }

    /// Answers this client alone, and notes it in the session's file.
    async fn reply(&mut self, dialect: &'static dyn Dialect, reply: Reply) -> Result<(), Gone> {
        self.replies += 1;
        let frame = dialect.reply(self.client.session.as_ref(), self.replies, &reply);
        if let Some(handle) = &self.handle {
            let id = handle.id().clone();
            handle.audit(move |at, last| audit_line(&id, at, last, &reply)).await;
        }
        self.send(Outgoing::Reply(frame)).await
    }

    /// False when it is not possible now; the client was told why, and its place is kept.
    async fn attach_if_needed(&mut self, told: Told) -> Result<bool, Gone> {
        if let Some(place) = self.written.take_detached() {
            self.since = Some(place);
            self.attached = false;
        }
        if !self.attached {
            self.attach(told).await?;
        }
        Ok(self.attached)
    }

    /// Attaches to the connection's session, making one if it has none. What it has missed goes
    /// out first, then what comes.
    async fn attach(&mut self, told: Told) -> Result<(), Gone> {
        let Some(dialect) = self.dialect else { return Ok(()) };
        let id = self.client.session.get_or_insert_with(clock::new_session_id).clone();
        let handle = self.app.sessions.handle(id, self.client.who.clone());
        self.handle = Some(handle.clone());
        let seq = self.since.as_ref().map(|cursor| cursor.seq);
        let attached = handle.attach(DialectKind(dialect), seq, dialect.can_approve()).await;
        let caught_up = match attached {
            Ok(attached) => self.catch_up(dialect, &handle, attached).await,
            Err(error) => Err(complaint(&error)),
        };
        match caught_up {
            Ok(done) => done,
            Err(_) if told == Told::Already => Ok(()),
            Err(complaint) => self.reply(dialect, Reply::Complaint(complaint)).await,
        }
    }

    async fn catch_up(
        &mut self,
        dialect: &'static dyn Dialect,
        handle: &Handle<DialectView>,
        attached: Attached<DialectView>,
    ) -> Result<Result<(), Gone>, Complaint> {
        let Attached { head, from, live, subscription } = attached;
        let mut view = View::new(dialect, handle.id(), from);
        let is_new = self.since.is_none();
        let cursor = self.since.clone().unwrap_or_else(|| Cursor::at(head));
        let cursor = Cursor { seq: cursor.seq.min(head), ..cursor };
        let mut resumed = false;
        let entries = entries(handle, from, head);
        tokio::pin!(entries);
        while let Some(entry) = entries.next().await {
            let entry = entry.map_err(|error| store_complaint(&error.to_string()))?;
            if entry.seq <= cursor.seq {
                view.skip(&entry);
                continue;
            }
            // Not at the cursor's own entry, which may be one that cannot be read.
            if !std::mem::replace(&mut resumed, true) {
                view.resume(&cursor);
            }
            let parts = if entry.seq == cursor.seq.next() { cursor.parts } else { 0 };
            for frame in view.see_entry(&entry, parts) {
                if self.send_frame(frame).await.is_err() {
                    return Ok(Err(Gone));
                }
            }
            self.since = Some(view.cursor());
        }
        if !resumed {
            view.resume(&cursor);
        }
        let mut frames = if is_new { view.opening() } else { Vec::new() };
        for growth in live {
            frames.extend(view.see(&Update::Grew(growth)));
        }
        frames.extend(view.pending());
        for frame in frames {
            if self.send_frame(frame).await.is_err() {
                return Ok(Err(Gone));
            }
        }
        self.attached = true;
        self.since = None;
        let place = view.place();
        Ok(self.send(Outgoing::Subscribed { dialect, subscription, place }).await)
    }
}

/// Entries after `from` up to `head`, page by page.
fn entries(
    handle: &Handle<DialectView>,
    from: Seq,
    head: Seq,
) -> impl stream::Stream<Item = Result<Arc<polyloop_session::LogEntry>, LogError>> + use<> {
    let handle = handle.clone();
    let pages = stream::unfold(Some(from), move |after| {
        let handle = handle.clone();
        async move {
            let after = after.filter(|after| *after < head)?;
            match handle.read(after, head).await {
                Ok(page) => {
                    let next = page.last().map(|entry| entry.seq);
                    Some((page.into_iter().map(Ok).collect::<Vec<_>>(), next))
                }
                Err(error) => Some((vec![Err(error)], None)),
            }
        }
    });
    pages.flat_map(stream::iter)
}

fn complaint(error: &CommandError) -> Complaint {
    match error {
        CommandError::Refused(refusal) => Complaint::from(refusal),
        CommandError::Store(why) => store_complaint(why),
    }
}

pub(super) fn store_complaint(why: &str) -> Complaint {
    Complaint::new("The session could not be kept", why, "store_failed")
}

/// What a connection that has no session yet is told; only a message makes one.
fn without_session(app: &App, ask: Ask) -> Option<Reply> {
    let (empty, limits) = (State::default(), &app.sessions.kit().limits);
    match ask {
        Ask::ContextInfo => {
            let info: ContextInfo = context::info(&empty, limits.tokens_max, limits.strategy);
            Some(Reply::ContextInfo(info))
        }
        Ask::Command(command) => {
            let refused = decide(&empty, command, limits).err();
            refused.map(|refusal| Reply::Complaint(Complaint::from(&refusal)))
        }
        Ask::SettleWithPatch { .. } => {
            let refusal = polyloop_session::Refusal::NoPendingApproval;
            Some(Reply::Complaint(Complaint::from(&refusal)))
        }
    }
}
