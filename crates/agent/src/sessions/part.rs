//! The part that this server has in a session: it runs it, or follows the one that does.

use polyloop_session::{Seq, SessionId};
use tokio::sync::mpsc;

use super::Sessions;
use super::shared_store::CLAIM_TRIES_MAX;
use crate::actor::{Actor, Birth, CommandError, Kept, Request};
use crate::clock;
use crate::follower::{Follower, Found, Outcome};
use crate::log::{LogError, OpenMode};
use crate::meter::{Meter, OneMore};
use crate::peers::{Before, Claim, Lease, Peers};
use crate::subscriber::{Ending, View};

pub(super) enum Part<V: View> {
    /// Where there are other servers, with leave to be the only one.
    Runs(Box<Actor<V>>, Option<Owned>),
    Follows(Box<Follower<V>>, OneMore),
}

/// Leave to run a session, counted as long as it is held.
pub(super) struct Owned {
    lease: Lease,
    counted: OneMore,
}

impl Owned {
    fn by(lease: Lease, meter: &Meter) -> Owned {
        Owned { lease, counted: meter.owns() }
    }
}

impl<V: View> Part<V> {
    /// Until the session sleeps, is closed, or its store fails.
    pub(super) async fn play(self) -> Ending {
        let (actor, owned) = match self {
            Part::Runs(actor, owned) => (actor, owned),
            // Boxed: most servers have nobody to follow.
            Part::Follows(follower, counted) => {
                match Box::pin(followed(*follower, counted)).await {
                    Ok((actor, owned)) => (actor, Some(owned)),
                    Err(ending) => return ending,
                }
            }
        };
        let ending = actor.run().await;
        if let Some(Owned { lease, counted }) = owned {
            drop(counted);
            lease.let_go().await;
        }
        ending
    }
}

/// Until the session is this server's, or nobody is here any more.
async fn followed<V: View>(
    follower: Follower<V>,
    counted: OneMore,
) -> Result<(Box<Actor<V>>, Owned), Ending> {
    let meter = follower.meter();
    let (follower, lease) = match follower.run().await {
        Outcome::Ended(ending) => return Err(ending),
        Outcome::Took(follower, lease) => (follower, lease),
    };
    match follower.taken_over().await {
        Ok(actor) => {
            drop(counted);
            meter.took_over(lease.before);
            Ok((Box::new(actor), Owned::by(lease, &meter)))
        }
        Err(ending) => {
            lease.let_go().await;
            Err(ending)
        }
    }
}

/// Who has a session.
enum Had {
    Ours(Lease),
    Theirs(Box<Found>),
}

/// Claims a session. An owner that ended before it made one is nobody to follow.
async fn had(peers: &dyn Peers, id: &SessionId) -> Result<Had, LogError> {
    for _ in 0..CLAIM_TRIES_MAX {
        match peers.claim(id).await? {
            Claim::Ours(lease) => return Ok(Had::Ours(lease)),
            Claim::Theirs(owner) => {
                if let Some(found) = Found::look(peers, id, owner).await? {
                    return Ok(Had::Theirs(Box::new(found)));
                }
            }
        }
    }
    Err(LogError::store(format!("session {id}"), "its owners change all the time"))
}

impl<V: View> Sessions<V> {
    pub(super) async fn part(
        &self,
        birth: Birth,
        mailbox: mpsc::Receiver<Box<Request<V>>>,
    ) -> Result<Part<V>, CommandError> {
        let kit = &self.shared.kit;
        let lease = match (&kit.peers, birth.kept) {
            (Some(peers), Kept::InStore) => match had(&**peers, &birth.id).await? {
                Had::Ours(lease) => Some(lease),
                Had::Theirs(found) => {
                    let (kit, peers) = (kit.clone(), peers.clone());
                    let follower = Follower::new(birth, kit, peers, *found, mailbox);
                    let counted = follower.meter().follows();
                    return Ok(Part::Follows(Box::new(follower), counted));
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
        if lease.as_ref().is_some_and(|lease| lease.before == Before::Fallen) {
            kit.meter.took_over(Before::Fallen);
        }
        let owned = lease.map(|lease| Owned::by(lease, &kit.meter));
        Ok(Part::Runs(Box::new(actor), owned))
    }
}
