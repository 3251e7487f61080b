//! Other servers of a store, on NATS: a bucket says who has what and who lives, plain NATS carries
//! questions and what is told.
//!
//! Never decides who writes: that is the fence's business. Whether a server lives is told by the
//! order of changes in the bucket, not by a clock; see `view`.

use std::sync::{Arc, Mutex};

use async_nats::jetstream::kv;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_session::{Live, SessionId};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use super::super::{Folded, LogError};
use super::{Nats, Store, lock};
use crate::peers::{Claim, News, Peers, Question, ServerId, Unanswered};

mod asking;
mod claim;
mod renew;
mod telling;
mod view;
mod watch;

use asking::Asking;
use telling::Telling;
use view::View;

pub(super) struct NatsPeers {
    shared: Arc<Shared>,
    asking: Asking,
    telling: Telling,
    questions: Mutex<Option<mpsc::Receiver<Question>>>,
    news: Mutex<Option<mpsc::UnboundedReceiver<News>>>,
    renewing: AbortHandle,
    /// They end with this.
    _tasks: JoinSet<()>,
}

/// What tasks and claims need of it.
struct Shared {
    here: ServerId,
    store: Arc<Store>,
    bucket: kv::Store,
    view: Mutex<View>,
    news: mpsc::UnboundedSender<News>,
    /// The watch is to begin again.
    look_again: Notify,
}

impl Nats {
    /// Joins the other servers of the store. Each call is another server.
    pub async fn peers(&self) -> Result<Arc<dyn Peers>, LogError> {
        Ok(Arc::new(NatsPeers::join(&self.store).await?))
    }
}

impl NatsPeers {
    async fn join(store: &Arc<Store>) -> Result<NatsPeers, LogError> {
        let here = ServerId(uuid::Uuid::new_v4().simple().to_string().into());
        let bucket = store.streams.owners().await?;
        let (send_news, news) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            here: here.clone(),
            store: store.clone(),
            bucket,
            view: Mutex::new(View::new(here)),
            news: send_news,
            look_again: Notify::new(),
        });
        let mut tasks = JoinSet::new();
        let asking = Asking::start(&shared, &mut tasks).await?;
        let questions = asking::hear(&shared, &mut tasks).await?;
        let telling = Telling::start(&shared, &mut tasks);
        // It stands in the bucket before it looks there, so there is always something to see.
        let revision = renew::begin(&shared).await?;
        watch::start(&shared, &mut tasks).await?;
        let renewing = tasks.spawn(renew::keep_renewing(shared.clone(), revision));
        Ok(NatsPeers {
            shared,
            renewing,
            asking,
            telling,
            questions: Mutex::new(Some(questions)),
            news: Mutex::new(Some(news)),
            _tasks: tasks,
        })
    }
}

impl Shared {
    fn subject(&self, kind: &str, name: &str) -> String {
        format!("{}.{kind}.{name}", self.store.streams.name)
    }

    /// Where a key of the bucket is in its stream.
    fn key_subject(&self, key: &str) -> String {
        format!("{}{key}", self.bucket.prefix)
    }
}

impl Peers for NatsPeers {
    fn here(&self) -> &ServerId {
        &self.shared.here
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Claim, LogError>> {
        claim::claim(&self.shared, id).boxed()
    }

    fn owner(&self, id: &SessionId) -> Option<ServerId> {
        lock(&self.shared.view).owner(id).cloned()
    }

    fn living(&self) -> usize {
        lock(&self.shared.view).living().count()
    }

    fn peek<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<(Folded, Live)>, LogError>> {
        self.shared.store.peek(id).boxed()
    }

    fn ask<'a>(
        &'a self,
        whom: &'a ServerId,
        question: Bytes,
    ) -> BoxFuture<'a, Result<Bytes, Unanswered>> {
        let subject = self.shared.subject(asking::ASK, &whom.0);
        match question.len() <= self.bytes_max() {
            true => self.asking.ask(subject, question, asking::ANSWER_TIME_MAX).boxed(),
            false => asking::ask_at_length(&self.shared, &self.asking, subject, question).boxed(),
        }
    }

    fn questions(&self) -> Option<mpsc::Receiver<Question>> {
        lock(&self.questions).take()
    }

    fn follow<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<mpsc::Receiver<Bytes>, LogError>> {
        telling::follow(&self.shared, &self.asking, id).boxed()
    }

    fn tell(&self, id: &SessionId, told: Bytes) {
        self.telling.tell(&self.shared, id, told);
    }

    fn bytes_max(&self) -> usize {
        self.shared.store.streams.payload_bytes_max()
    }

    fn news(&self) -> Option<mpsc::UnboundedReceiver<News>> {
        lock(&self.news).take()
    }

    fn is_ours_to_mind(&self, id: &SessionId) -> bool {
        lock(&self.shared.view).minder(id.as_str()) == self.shared.here
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        self.renewing.abort();
        renew::leave(&self.shared).boxed()
    }
}
