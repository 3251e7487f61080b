//! Other servers on the same store: which of them has a session, and how to talk to it.
//!
//! A claim only says whom to ask. That two servers never write one session is the log's business:
//! whoever opens it there fences off whoever had it. Nothing here depends on a clock.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use polyloop_session::{Live, SessionId};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::log::{Folded, LogError};

pub(crate) mod wire;

/// One run of a server: a program that is started again is another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerId(pub Arc<str>);

/// What came of asking for a session.
pub enum Claim {
    Ours(Lease),
    /// A server that lives has it.
    Theirs(ServerId),
}

/// Whose a session was when it was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It is new, or was let go.
    Nobodys,
    /// A server's that has fallen.
    Fallen,
}

/// This server has a session. When it is dropped, others may have it.
pub struct Lease {
    pub before: Before,
    let_go: Option<BoxFuture<'static, ()>>,
}

impl Lease {
    pub fn new(before: Before, let_go: BoxFuture<'static, ()>) -> Lease {
        Lease { before, let_go: Some(let_go) }
    }

    /// Others may have the session when this is done.
    pub async fn let_go(mut self) {
        if let Some(let_go) = self.let_go.take() {
            let_go.await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let (Some(let_go), Ok(runtime)) =
            (self.let_go.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(let_go);
        }
    }
}

/// Why a question got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Nobody was there to hear it, so nothing came of it.
    Unheard,
    /// It may have been heard.
    Silent,
}

/// What another server asks of this one.
pub struct Question {
    pub body: Bytes,
    pub answer: oneshot::Sender<Bytes>,
}

/// What became of a session's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    Taken {
        id: SessionId,
        by: ServerId,
    },
    /// Its server let it go.
    Free {
        id: SessionId,
    },
    /// Its server does not live any more. Told to every server that does.
    Fallen {
        id: SessionId,
        was: ServerId,
    },
}

pub trait Peers: Send + Sync + 'static {
    fn here(&self) -> &ServerId;

    /// Takes a session for this server, unless one that lives has it. To claim what this server has
    /// already is an error of whoever asks: there is one opener a session and process.
    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Claim, LogError>>;

    /// Who has a session, as far as this server has heard; nobody where that one has fallen.
    fn owner(&self, id: &SessionId) -> Option<ServerId>;

    /// How many servers live, as far as this one has heard, which is one of them.
    fn living(&self) -> usize;

    /// What a session's log and journal hold, without having it. `None` when there is none.
    fn peek<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Folded, Live)>, LogError>>;

    /// Asks another server. Questions that are asked one after the other are heard in that order.
    fn ask<'a>(
        &'a self,
        whom: &'a ServerId,
        question: Bytes,
    ) -> BoxFuture<'a, Result<Bytes, Unanswered>>;

    /// What others ask of this server, in the order in which it came. Given once.
    fn questions(&self) -> Option<mpsc::Receiver<Question>>;

    /// What is told of a session from now on, in order. Some of it may be missing: whoever follows
    /// sees that, and reads the log.
    fn follow<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<mpsc::Receiver<Bytes>, LogError>>;

    /// Tells whoever follows a session. Never waits: what there is no room for is not told.
    fn tell(&self, id: &SessionId, told: Bytes);

    /// The longest that may be told at once. What is asked may be longer.
    fn bytes_max(&self) -> usize;

    /// What becomes of owners from now on. Given once.
    fn news(&self) -> Option<mpsc::UnboundedReceiver<News>>;

    /// Which of the servers that live is to look after a session that nobody has; all say the same.
    fn is_ours_to_mind(&self, id: &SessionId) -> bool;

    /// This server ends: others need not wait to find out.
    fn leave(&self) -> BoxFuture<'_, ()>;
}
