//! How fast one connection may send. Bytes beyond the limit are read more slowly; messages and turns
//! beyond theirs are refused, and whoever sent them is told. What stops or decides something is
//! always taken.

use std::sync::Arc;
use std::time::Duration;

use polyloop_agent::meter::Limit;
use polyloop_dialects::{Ask, Asked, Complaint, Dialect, Manner, Reply};
use polyloop_session::{Command, SessionId};
use tokio::time::Instant;

use super::outgoing::Outgoing;
use super::read::{Gone, Reader};
use crate::rate::{Sent, TooFast};

/// What a frame is besides its content.
const FRAME_BYTES: usize = 6;
/// Reading pauses so long after a message too many: refusing is work, too.
const REFUSED_REST: Duration = Duration::from_millis(20);
/// The longest that nothing is read without looking up.
const REST_MAX: Duration = Duration::from_secs(5);

pub(super) struct Pacing {
    own: Sent,
    client: Arc<Sent>,
    /// The message that is being read is one too many.
    too_fast: Option<TooFast>,
    rest_until: Option<Instant>,
}

impl Pacing {
    pub(super) fn new(own: Sent, client: Arc<Sent>) -> Pacing {
        Pacing { own, client, too_fast: None, rest_until: None }
    }

    /// A message of so many bytes has come.
    pub(super) fn came(&mut self, bytes: usize) {
        self.too_fast = self.own.message().and_then(|()| self.client.message()).err();
        let bytes = bytes.saturating_add(FRAME_BYTES);
        let rest = self.own.bytes(bytes).max(self.client.bytes(bytes));
        self.rest(match self.too_fast {
            Some(_) => rest.max(REFUSED_REST),
            None => rest,
        });
    }

    fn rest(&mut self, rest: Duration) {
        self.rest_until = (!rest.is_zero()).then(|| Instant::now() + rest.min(REST_MAX));
    }

    /// Whether nothing is read for now.
    pub(super) fn rests(&self) -> bool {
        self.rest_until.is_some()
    }

    /// Waits until reading goes on, or somebody should look up.
    pub(super) async fn rested(&mut self) {
        if let Some(until) = self.rest_until {
            tokio::time::sleep_until(until).await;
            let left = self.own.bytes(0).max(self.client.bytes(0));
            self.rest(left);
        }
    }

    /// Why a message is not taken, and what it is counted as.
    pub(super) fn refuses(&self, ask: &Ask) -> Option<(Limit, Complaint)> {
        if stops_or_decides(ask) {
            return None;
        }
        self.refuses_unread().or_else(|| {
            let turn = || self.own.turn().and_then(|()| self.client.turn());
            let too_fast = begins_turn(ask).then(turn)?.err()?;
            Some((Limit::Turns, not_taken(&too_fast, "turns a minute")))
        })
    }

    /// The same for what cannot be read.
    pub(super) fn refuses_unread(&self) -> Option<(Limit, Complaint)> {
        let too_fast = self.too_fast.as_ref()?;
        Some((Limit::Messages, not_taken(too_fast, "messages a second")))
    }

    /// Whether the message that is being read is one too many, taken or not.
    pub(super) fn is_flooded(&self) -> bool {
        self.too_fast.is_some()
    }
}

fn not_taken(too_fast: &TooFast, what: &str) -> Complaint {
    let error = format!("Not taken: {}", too_fast.text(what));
    Complaint::new(&error, error.clone(), "rate_limited")
}

fn begins_turn(ask: &Ask) -> bool {
    use Command::{Compact, Resume, Send};
    matches!(ask, Ask::Run(_) | Ask::Command(Send(_) | Resume { .. } | Compact { .. }))
}

/// Nobody may be kept from it: what runs goes on meanwhile. A message that answers a question only
/// by being the next one is not known for that here: whether one is open is the session's to say.
fn stops_or_decides(ask: &Ask) -> bool {
    use Command::{Cancel, Interrupt, Settle};
    let command = matches!(ask, Ask::Command(Interrupt { .. } | Cancel { .. } | Settle { .. }));
    command || matches!(ask, Ask::SettleWithPatch { .. })
}

impl Reader {
    /// Tells the sender of a message that came too fast. Nobody else is told, not even in the chat
    /// room, and no file: a flood must not become one elsewhere.
    pub(super) async fn too_fast(
        &mut self,
        dialect: &'static dyn Dialect,
        asked: Option<&Asked>,
        (limit, mut complaint): (Limit, Complaint),
    ) -> Result<(), Gone> {
        self.app.metrics.refuses(limit);
        complaint.about = asked.and_then(|asked| asked.about.clone());
        if let Some(Asked { ask: Ask::Run(run), .. }) = asked {
            complaint.request = run.send.client_ref.clone();
        }
        let session = asked.and_then(|asked| asked.session.clone());
        let session = session.or_else(|| self.client.session.clone());
        let known = |session: &SessionId| self.attachments.contains_key(session);
        let session = session.filter(|id| dialect.manner() != Manner::Runs && known(id));
        self.replies += 1;
        let reply = Reply::Complaint(complaint);
        let frame = dialect.reply(session.as_ref(), self.replies, &reply);
        self.send(Outgoing::Reply(session, Box::new(frame))).await
    }
}
