//! Peers around other peers: what a server says to others and hears of them comes late, or not at
//! all, where a test says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_agent::log::{Folded, LogError};
use polyloop_agent::peers::{Claim, News, Peers, Question, ServerId, Unanswered};
use polyloop_session::{Live, SessionId};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::it::rig::in_time;

pub struct Between {
    inner: Arc<dyn Peers>,
    /// The kind of question whose next answer is lost.
    to_lose: Mutex<Option<&'static str>>,
    lost: watch::Sender<usize>,
    loses_claim: AtomicBool,
    holds_claims: watch::Sender<bool>,
    holds_news: watch::Sender<bool>,
    /// What is open is looked for later than what is in the log.
    holds_peeks: watch::Sender<bool>,
    peeked: watch::Sender<usize>,
}

impl Between {
    pub fn new(inner: Arc<dyn Peers>) -> Arc<Between> {
        Arc::new(Between {
            inner,
            to_lose: Mutex::default(),
            lost: watch::Sender::new(0),
            loses_claim: AtomicBool::new(false),
            holds_claims: watch::Sender::new(false),
            holds_news: watch::Sender::new(false),
            holds_peeks: watch::Sender::new(false),
            peeked: watch::Sender::new(0),
        })
    }

    /// The next question of that kind is heard and answered, and the answer never comes.
    pub fn lose_answer(&self, what: &'static str) {
        *self.to_lose.lock().unwrap() = Some(what);
    }

    /// An answer was given, and lost.
    pub async fn until_lost(&self) {
        let mut lost = self.lost.subscribe();
        in_time("an answer to be lost", lost.wait_for(|lost| *lost > 0)).await.unwrap();
    }

    /// The next claim is made, and whoever makes it does not hear of it.
    pub fn lose_claim(&self) {
        self.loses_claim.store(true, Ordering::SeqCst);
    }

    pub fn hold_claims(&self, hold: bool) {
        self.holds_claims.send_replace(hold);
    }

    /// What became of owners is known here, and told to nobody for now.
    pub fn hold_news(&self, hold: bool) {
        self.holds_news.send_replace(hold);
    }

    /// Whoever looks at a session sees what is open there later than what is in its log.
    pub fn hold_peeks(&self, hold: bool) {
        self.holds_peeks.send_replace(hold);
    }

    /// The log of a session was looked at.
    pub async fn until_peeked(&self) {
        let mut peeked = self.peeked.subscribe();
        in_time("a look", peeked.wait_for(|peeked| *peeked > 0)).await.unwrap();
    }

    fn is_to_lose(&self, question: &[u8]) -> bool {
        let asked: Value = serde_json::from_slice(question).unwrap();
        let mut to_lose = self.to_lose.lock().unwrap();
        to_lose.take_if(|what| asked["what"].get(*what).is_some()).is_some()
    }
}

async fn until_let_go(holds: &watch::Sender<bool>) {
    holds.subscribe().wait_for(|holds| !*holds).await.unwrap();
}

impl Peers for Between {
    fn here(&self) -> &ServerId {
        self.inner.here()
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Claim, LogError>> {
        async move {
            until_let_go(&self.holds_claims).await;
            let claim = self.inner.claim(id).await?;
            if self.loses_claim.swap(false, Ordering::SeqCst) {
                std::mem::forget(claim);
                return Err(LogError::store(format!("session {id}"), "the answer was lost"));
            }
            Ok(claim)
        }
        .boxed()
    }

    fn living(&self) -> usize {
        self.inner.living()
    }

    fn owner(&self, id: &SessionId) -> Option<ServerId> {
        self.inner.owner(id)
    }

    fn peek<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Folded, Live)>, LogError>> {
        async move {
            let Some((folded, live)) = self.inner.peek(id).await? else { return Ok(None) };
            self.peeked.send_modify(|peeked| *peeked += 1);
            if !*self.holds_peeks.borrow() {
                return Ok(Some((folded, live)));
            }
            until_let_go(&self.holds_peeks).await;
            Ok(self.inner.peek(id).await?.map(|(_, live)| (folded, live)))
        }
        .boxed()
    }

    fn ask<'a>(
        &'a self,
        whom: &'a ServerId,
        question: Bytes,
    ) -> BoxFuture<'a, Result<Bytes, Unanswered>> {
        let is_to_lose = self.is_to_lose(&question);
        // At once, so that it has its place behind earlier ones.
        let answer = self.inner.ask(whom, question);
        async move {
            let answer = answer.await;
            if is_to_lose {
                assert!(answer.is_ok(), "{answer:?}");
                self.lost.send_modify(|lost| *lost += 1);
                std::future::pending::<()>().await;
            }
            answer
        }
        .boxed()
    }

    fn questions(&self) -> Option<mpsc::Receiver<Question>> {
        self.inner.questions()
    }

    fn follow<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<mpsc::Receiver<Bytes>, LogError>> {
        self.inner.follow(id)
    }

    fn tell(&self, id: &SessionId, told: Bytes) {
        self.inner.tell(id, told);
    }

    fn bytes_max(&self) -> usize {
        self.inner.bytes_max()
    }

    fn news(&self) -> Option<mpsc::UnboundedReceiver<News>> {
        let mut inner = self.inner.news()?;
        let (send, news) = mpsc::unbounded_channel();
        let mut holds = self.holds_news.subscribe();
        tokio::spawn(async move {
            while let Some(news) = inner.recv().await {
                // Nobody holds anything any more when this is gone.
                let _ = holds.wait_for(|holds| !*holds).await;
                if send.send(news).is_err() {
                    return;
                }
            }
        });
        Some(news)
    }

    fn is_ours_to_mind(&self, id: &SessionId) -> bool {
        self.inner.is_ours_to_mind(id)
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        self.inner.leave()
    }
}
