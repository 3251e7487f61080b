//! Finds out who has the session, and takes it over when nobody has.

use super::Follower;
use crate::actor::{Actor, Inherited};
use crate::log::{LogError, OpenMode, Opened};
use crate::peers::{Claim, Lease, ServerId};
use crate::subscriber::{Ending, View};

impl<V: View> Follower<V> {
    /// Looks who has the session. A lease is given when it is this server's.
    pub(super) async fn look(&mut self) -> Result<Option<Lease>, LogError> {
        self.give_up();
        let known = self.peers.owner(&self.birth.id);
        if known != self.owner {
            self.forget_asking(known.as_ref());
        }
        match known {
            Some(owner) if owner != *self.peers.here() => self.has(owner),
            _ if self.is_wanted() || self.minds() => return self.claim().await,
            // Nobody here wants it, and nobody has it: it may be another one when it is next used.
            _ => self.is_over = true,
        }
        Ok(None)
    }

    /// Whether this server is the one to look after a turn that nobody runs.
    pub(super) fn minds(&self) -> bool {
        self.state.turn().is_some() && self.peers.is_ours_to_mind(&self.birth.id)
    }

    async fn claim(&mut self) -> Result<Option<Lease>, LogError> {
        match self.peers.claim(&self.birth.id).await {
            Ok(Claim::Ours(lease)) => return Ok(Some(lease)),
            Ok(Claim::Theirs(owner)) => {
                // What the last one may have done is not asked of this one.
                self.forget_asking(Some(&owner));
                self.has(owner);
            }
            // It is tried again: meanwhile there is what there was.
            Err(error) => {
                tracing::warn!(session = %self.birth.id, %error, "nobody has the session");
                self.owner = None;
            }
        }
        Ok(None)
    }

    fn has(&mut self, owner: ServerId) {
        self.owner = Some(owner);
        self.ask_again();
    }

    /// Whoever was thought to have it does not.
    pub(super) fn not_there(&mut self, whom: &ServerId) {
        tracing::debug!(session = %self.birth.id, server = %whom.0, "it is not there");
        self.ask_again();
        // Until the next look, when there may be another one.
        self.owner = None;
    }

    /// Opens the session here: everybody sees what the last owner wrote, then what follows.
    pub(crate) async fn taken_over(mut self) -> Result<Actor<V>, Ending> {
        let opened = match self.opened().await {
            Ok(opened) => opened,
            Err(error) => {
                let ending = Ending::of(&error);
                self.audience.end(&ending);
                return Err(ending);
            }
        };
        let backlog = self.inherit(opened.folded.state.last_seq());
        let inherited = Inherited { audience: self.audience, backlog };
        let started =
            Actor::start(self.birth, self.kit, opened, self.mailbox, Some(inherited)).await;
        started.map_err(|error| Ending::of(&error))
    }

    async fn opened(&mut self) -> Result<Opened, LogError> {
        let id = &self.birth.id;
        let Some(opened) = self.kit.log.open(id, OpenMode::Existing).await? else {
            return Err(LogError::store(format!("session {id}"), "it was put away"));
        };
        // Nobody else writes it any more, so this is all there is.
        self.read_on().await?;
        opened.live.growths().for_each(|growth| self.grow(growth));
        self.audience.deliver();
        Ok(opened)
    }
}
