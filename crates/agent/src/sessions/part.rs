//! The part that this server has in a session: it runs it, or follows the one that does.

use polyloop_session::Seq;
use tokio::sync::mpsc;

use super::Sessions;
use crate::actor::{Actor, Birth, CommandError, Kept, Request};
use crate::clock;
use crate::follower::{Follower, Outcome};
use crate::log::OpenMode;
use crate::peers::{Claim, Lease};
use crate::subscriber::{Ending, View};

pub(super) enum Part<V: View> {
    /// Where there are other servers, with leave to be the only one.
    Runs(Box<Actor<V>>, Option<Lease>),
    Follows(Box<Follower<V>>),
}

impl<V: View> Part<V> {
    /// Until the session sleeps, is closed, or its store fails.
    pub(super) async fn play(self) -> Ending {
        let (actor, lease) = match self {
            Part::Runs(actor, lease) => (actor, lease),
            // Boxed: most servers have nobody to follow.
            Part::Follows(follower) => match Box::pin(followed(*follower)).await {
                Ok((actor, lease)) => (actor, Some(lease)),
                Err(ending) => return ending,
            },
        };
        let ending = actor.run().await;
        if let Some(lease) = lease {
            lease.let_go().await;
        }
        ending
    }
}

/// Until the session is this server's, or nobody is here any more.
async fn followed<V: View>(follower: Follower<V>) -> Result<(Box<Actor<V>>, Lease), Ending> {
    let (follower, lease) = match follower.run().await {
        Outcome::Ended(ending) => return Err(ending),
        Outcome::Took(follower, lease) => (follower, lease),
    };
    match follower.taken_over().await {
        Ok(actor) => Ok((Box::new(actor), lease)),
        Err(ending) => {
            lease.let_go().await;
            Err(ending)
        }
    }
}

impl<V: View> Sessions<V> {
    pub(super) async fn part(
        &self,
        birth: Birth,
        mailbox: mpsc::Receiver<Box<Request<V>>>,
    ) -> Result<Part<V>, CommandError> {
        let kit = &self.shared.kit;
        let lease = match (&kit.peers, birth.kept) {
            (Some(peers), Kept::InStore) => match peers.claim(&birth.id).await? {
                Claim::Ours(lease) => Some(lease),
                Claim::Theirs(owner) => {
                    let (kit, peers) = (kit.clone(), peers.clone());
                    let follower = Follower::start(birth, kit, peers, owner, mailbox).await?;
                    return Ok(Part::Follows(Box::new(follower)));
                }
            },
            _ => None,
        };
        let (id, kept) = (birth.id.clone(), birth.kept);
        let Some(opened) = kit.log_of(kept).open(&id, OpenMode::OrCreate).await? else {
            return Err(CommandError::Store("the session cannot be made".into()));
        };
        let is_new = opened.folded.state.last_seq() == Seq::NONE;
        let actor = Actor::start(birth, kit.clone(), opened, mailbox, None).await?;
        if is_new
            && kept == Kept::InStore
            && let Some(todos) = &self.shared.todos
            && let Err(error) = todos.create(&id, clock::now())
        {
            tracing::warn!(session = %id, %error, "its todos file could not be made");
        }
        Ok(Part::Runs(Box::new(actor), lease))
    }
}
