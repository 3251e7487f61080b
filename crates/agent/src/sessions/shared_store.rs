//! Several servers on one store: what others ask of sessions here, what becomes of their owners, and
//! who looks after sessions that nobody has any more.

use std::sync::Arc;
use std::time::Duration;

use polyloop_session::SessionId;
use polyloop_session::state::AUTO_RESUME_VIA;
use polyloop_session::wait::Who;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, oneshot};

use super::{Running, Sessions};
use crate::actor::{CommandError, Kept, Request};
use crate::peers::wire::{self, Answered, Asked, What};
use crate::peers::{Claim, Lease, News, Peers, Question, Unanswered};
use crate::subscriber::View;

/// Sessions of a fallen server that are taken over at once.
const TAKEN_AT_ONCE_MAX: usize = 16;
/// How often a session is claimed that its owner is just closing, and how long after each other.
pub(super) const CLAIM_TRIES_MAX: u32 = 100;
const CLAIM_EVERY: Duration = Duration::from_millis(50);

/// Whether a session is in use at another server.
pub(super) enum Elsewhere {
    Active,
    /// Nobody else has it, nor will while this lease is held.
    Ours(Option<Lease>),
}

impl<V: View> Sessions<V> {
    /// Serves other servers of the same store, and looks after what they leave, while this runs.
    pub fn serve_peers(&self) {
        let Some(peers) = self.shared.kit.peers.clone() else { return };
        if let Some(mut questions) = peers.questions() {
            let sessions = self.clone();
            tokio::spawn(async move {
                while let Some(question) = questions.recv().await {
                    sessions.hear(question).await;
                }
            });
        }
        if let Some(mut news) = peers.news() {
            let (sessions, few) = (self.clone(), Arc::new(Semaphore::new(TAKEN_AT_ONCE_MAX)));
            tokio::spawn(async move {
                while let Some(news) = news.recv().await {
                    sessions.learn(news, &few).await;
                }
            });
        }
    }

    /// Other servers need not wait to find out that this one has ended.
    pub async fn leave_peers(&self) {
        if let Some(peers) = &self.shared.kit.peers {
            peers.leave().await;
        }
    }

    /// How many servers of the store live, this one among them.
    pub fn servers_living(&self) -> usize {
        self.shared.kit.peers.as_ref().map_or(1, |peers| peers.living())
    }

    /// Whether no server has it.
    pub(super) fn is_nobodys(&self, id: &SessionId) -> bool {
        self.shared.kit.peers.as_ref().is_none_or(|peers| peers.owner(id).is_none())
    }

    fn is_ours_to_mind(&self, id: &SessionId) -> bool {
        match &self.shared.kit.peers {
            Some(peers) => peers.owner(id).is_none() && peers.is_ours_to_mind(id),
            None => true,
        }
    }

    fn known(&self, id: &SessionId) -> Option<Running<V>> {
        // One that is just being opened finds out by itself.
        self.slots().get(id)?.try_lock().ok()?.clone()
    }

    /// Passes a question to the session it is about, in the order in which they came.
    async fn hear(&self, Question { body, answer }: Question) {
        let answer_with = |answered: &Answered| wire::written(answered).unwrap_or_default();
        let Some(asked) = wire::read::<Asked>(&body) else { return };
        let Some(running) = self.known(&asked.id) else {
            let _ = answer.send(answer_with(&Answered::NotHere));
            self.check_claim(&asked.id);
            return;
        };
        let bytes_max = self.shared.kit.peers.as_ref().map_or(0, |peers| peers.bytes_max());
        let (reply, answered) = oneshot::channel();
        let sent = running.mailbox.try_send(Box::new(Request::Remote { asked, reply }));
        tokio::spawn(async move {
            let answered = match sent {
                Ok(()) => running.answered(answered).await,
                Err(TrySendError::Closed(_)) => Some(Answered::NotHere),
                Err(TrySendError::Full(request)) => match running.mailbox.send(request).await {
                    Ok(()) => running.answered(answered).await,
                    Err(_) => Some(Answered::NotHere),
                },
            };
            // Who gets no answer does not know what came of it.
            if let Some(answered) = answered {
                let _ = answer.send(fitting(&answered, bytes_max));
            }
        });
    }

    async fn learn(&self, news: News, few: &Arc<Semaphore>) {
        let (News::Taken { id, .. } | News::Free { id } | News::Fallen { id, .. }) = &news;
        let slot = self.slots().get(id).cloned();
        if let Some(slot) = slot {
            // By itself: whoever opens it just now, or has a full mailbox, keeps no other waiting.
            let request = match news {
                News::Free { .. } => Request::LetGo,
                News::Taken { .. } | News::Fallen { .. } => Request::OwnerChanged,
            };
            let (sessions, id) = (self.clone(), id.clone());
            tokio::spawn(async move {
                let running = slot.lock().await.clone();
                // It may have ended meanwhile, and was not forgotten for this one's sake.
                drop(slot);
                sessions.forget(&id);
                if let Some(running) = running {
                    let _ = running.mailbox.send(Box::new(request)).await;
                }
            });
            return;
        }
        if let News::Fallen { id, .. } = news
            && self.is_ours_to_mind(&id)
        {
            let (sessions, few) = (self.clone(), few.clone());
            tokio::spawn(async move {
                if let Ok(_permit) = few.acquire_owned().await {
                    sessions.mind(&id).await;
                }
            });
        }
    }

    /// A claim of which nobody here knows, because its answer was lost, is let go.
    fn check_claim(&self, id: &SessionId) {
        let Some(peers) = &self.shared.kit.peers else { return };
        if self.slots().contains_key(id) || peers.owner(id).as_ref() != Some(peers.here()) {
            return;
        }
        let (sessions, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            if let Err(error) = sessions.tidy_claim(&id).await {
                tracing::warn!(session = %id, ?error, "a claim of nobody's could not be let go");
            }
        });
    }

    /// A session whose server has fallen, with nobody here who watches: a turn that ran is closed or
    /// goes on, as after any crash.
    async fn mind(&self, id: &SessionId) {
        let minded = match self.summary(id).await {
            Ok(Some(summary)) if summary.standing.in_turn => {
                let by = Who::via(AUTO_RESUME_VIA);
                self.running(id, &by, Kept::InStore, None).await.map(drop)
            }
            Ok(_) => self.tidy_claim(id).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = minded {
            tracing::warn!(session = %id, ?error, "nobody looks after the session");
        }
    }

    /// Nothing is under way: it is opened when it is next used.
    async fn tidy_claim(&self, id: &SessionId) -> Result<(), CommandError> {
        let slot = self.slot(id).lock_owned().await;
        if slot.is_none()
            && let Some(peers) = &self.shared.kit.peers
            && let Claim::Ours(lease) = peers.claim(id).await?
        {
            lease.let_go().await;
        }
        drop(slot);
        self.forget(id);
        Ok(())
    }

    /// Takes a session that is to be put away from whoever has it, unless it is in use there.
    pub(super) async fn close_elsewhere(&self, id: &SessionId) -> Result<Elsewhere, CommandError> {
        let Some(peers) = &self.shared.kit.peers else { return Ok(Elsewhere::Ours(None)) };
        for _ in 0..CLAIM_TRIES_MAX {
            let owner = match peers.claim(id).await? {
                Claim::Ours(lease) => return Ok(Elsewhere::Ours(Some(lease))),
                Claim::Theirs(owner) => owner,
            };
            let (id, from) = (id.clone(), peers.here().clone());
            let asked = Asked { id, from, what: What::CloseIfIdle };
            let Some(body) = wire::written(&asked) else { break };
            let questioned = self.shared.kit.meter.asks_peer();
            let answered = answered(&**peers, &owner, body).await;
            questioned.came_to(&answered);
            match answered {
                Ok(Some(Answered::Idle(false))) => return Ok(Elsewhere::Active),
                Ok(_) | Err(Unanswered::Unheard) => tokio::time::sleep(CLAIM_EVERY).await,
                Err(Unanswered::Silent) => break,
            }
        }
        Err(CommandError::Store(format!("session {id}: the server that has it does not answer")))
    }
}

/// What is open may be longer than an answer: it comes with its items' ends.
fn fitting(answered: &Answered, bytes_max: usize) -> bytes::Bytes {
    let body = wire::written(answered).unwrap_or_default();
    match answered {
        Answered::Stands { head, .. } if body.len() > bytes_max => {
            wire::written(&Answered::Stands { head: *head, live: Vec::new() }).unwrap_or_default()
        }
        _ => body,
    }
}

async fn answered(
    peers: &dyn Peers,
    whom: &crate::peers::ServerId,
    body: bytes::Bytes,
) -> Result<Option<Answered>, Unanswered> {
    Ok(wire::read(&peers.ask(whom, body).await?))
}
