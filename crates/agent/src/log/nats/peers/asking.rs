//! Questions to other servers and theirs to this one, on plain NATS.
//!
//! Nothing is asked twice. A question that could not be sent is unheard; one that may have arrived
//! and got no answer is silent.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Message, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::super::LogError;
use super::super::{Store, failed_to, lock};
use super::Shared;
use crate::peers::{Question, Unanswered};

/// Kinds of subjects; the server that is asked stands behind.
pub(super) const ASK: &str = "ask";
pub(super) const KNOCK: &str = "knock";

pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
const ASKED_WAITING_MAX: usize = 16 * 1024;
const QUESTIONS_WAITING_MAX: usize = 1024;
/// What the name of a question in the object store begins with; no question itself does.
const LONG_QUESTION: &str = "question/";

type Answer = Result<Bytes, Unanswered>;
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

pub(super) struct Asking {
    queue: mpsc::Sender<Asked>,
    waiting: Waiting,
    asked: AtomicU64,
}

struct Asked {
    number: u64,
    subject: String,
    body: Bytes,
}

/// Whoever asked has given up, or has the answer.
struct Forget {
    number: u64,
    waiting: Waiting,
}

impl Drop for Forget {
    fn drop(&mut self) {
        lock(&self.waiting).remove(&self.number);
    }
}

impl Asking {
    pub async fn start(shared: &Shared, tasks: &mut JoinSet<()>) -> Result<Asking, LogError> {
        let client = &shared.store.streams.client;
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.*")).await;
        let answers = answers.map_err(|error| failed_to("hear answers", error))?;
        let (queue, asked) = mpsc::channel(ASKED_WAITING_MAX);
        let waiting = Waiting::default();
        tasks.spawn(send(client.clone(), inbox, asked, waiting.clone()));
        tasks.spawn(hand_out(answers, waiting.clone()));
        Ok(Asking { queue, waiting, asked: AtomicU64::new(0) })
    }

    /// It has its place behind earlier ones when this returns, before it is polled.
    pub fn ask(
        &self,
        subject: String,
        body: Bytes,
        within: Duration,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (send, answer) = oneshot::channel();
        lock(&self.waiting).insert(number, send);
        let forget = Forget { number, waiting: self.waiting.clone() };
        let queued = self.queue.try_send(Asked { number, subject, body });
        async move {
            let _forget = forget;
            if queued.is_err() {
                return Err(Unanswered::Unheard);
            }
            match timeout(within, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Err(Unanswered::Silent),
            }
        }
    }
}

/// A question that fits in no message: it stands in the object store until it is answered.
pub(super) async fn ask_at_length(
    shared: &Shared,
    asking: &Asking,
    subject: String,
    question: Bytes,
) -> Answer {
    let name = format!("{LONG_QUESTION}{}", uuid::Uuid::new_v4().simple());
    if let Err(error) = shared.store.put(&name, &question).await {
        tracing::warn!(%error, "a long question cannot be asked");
        return Err(Unanswered::Unheard);
    }
    let answer = asking.ask(subject, Bytes::from(name.clone()), ANSWER_TIME_MAX).await;
    if let Err(error) = shared.store.streams.objects.delete(&name).await {
        tracing::warn!(name, %error, "a long question stays in the object store");
    }
    answer
}

async fn send(client: Client, inbox: String, mut asked: mpsc::Receiver<Asked>, waiting: Waiting) {
    while let Some(Asked { number, subject, body }) = asked.recv().await {
        // What its asker has given up is not heard late.
        if !lock(&waiting).contains_key(&number) {
            continue;
        }
        let is_sent = client.connection_state() == State::Connected
            && client.publish_with_reply(subject, format!("{inbox}.{number}"), body).await.is_ok();
        if !is_sent {
            resolve(&waiting, number, Err(Unanswered::Unheard));
        }
    }
}

async fn hand_out(mut answers: Subscriber, waiting: Waiting) {
    while let Some(Message { subject, status, payload, .. }) = answers.next().await {
        let Some(number) = subject.rsplit('.').next().and_then(|number| number.parse().ok()) else {
            continue;
        };
        let answer = match status {
            Some(StatusCode::NO_RESPONDERS) => Err(Unanswered::Unheard),
            _ => Ok(payload),
        };
        resolve(&waiting, number, answer);
    }
}

fn resolve(waiting: &Waiting, number: u64, answer: Answer) {
    let asker = lock(waiting).remove(&number);
    if let Some(asker) = asker {
        drop(asker.send(answer)); // It may have given up just now.
    }
}

/// Hears what others ask of this server, and answers those who only want to know it is there.
pub(super) async fn hear(
    shared: &Shared,
    tasks: &mut JoinSet<()>,
) -> Result<mpsc::Receiver<Question>, LogError> {
    let client = &shared.store.streams.client;
    let subscribed = async |kind| {
        let heard = client.subscribe(shared.subject(kind, &shared.here.0)).await;
        heard.map_err(|error| failed_to("hear other servers", error))
    };
    let (questions, knocks) = (subscribed(ASK).await?, subscribed(KNOCK).await?);
    let (send, receive) = mpsc::channel(QUESTIONS_WAITING_MAX);
    tasks.spawn(pass_on(shared.store.clone(), questions, send));
    tasks.spawn(open_door(client.clone(), knocks));
    Ok(receive)
}

async fn pass_on(store: Arc<Store>, mut questions: Subscriber, send: mpsc::Sender<Question>) {
    while let Some(asked) = questions.next().await {
        let Some(reply) = asked.reply else { continue };
        let Some(body) = whole(&store, asked.payload).await else { continue };
        let (answer, answered) = oneshot::channel();
        if send.send(Question { body, answer }).await.is_err() {
            return;
        }
        let client = store.streams.client.clone();
        tokio::spawn(async move {
            // Whoever does not answer leaves the asker with silence.
            let Ok(answer) = answered.await else { return };
            if let Err(error) = client.publish(reply, answer).await {
                tracing::warn!(%error, "another server gets no answer");
            }
        });
    }
}

/// A question, wherever it stands; `None` when it cannot be had, which leaves the asker with silence.
async fn whole(store: &Store, body: Bytes) -> Option<Bytes> {
    let Some(name) = std::str::from_utf8(&body).ok().filter(|b| b.starts_with(LONG_QUESTION))
    else {
        return Some(body);
    };
    match store.get(name).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "a long question cannot be read");
            None
        }
    }
}

async fn open_door(client: Client, mut knocks: Subscriber) {
    while let Some(knock) = knocks.next().await {
        let Some(reply) = knock.reply else { continue };
        drop(client.publish(reply, Bytes::new()).await);
    }
}
