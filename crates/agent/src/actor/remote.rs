//! What other servers ask of a session that this one has.

use polyloop_session::Seq;
use tokio::sync::oneshot;

use super::{Actor, Answered as Done, Flow, Kept, Request};
use crate::log::LogError;
use crate::peers::wire::{Answered, Asked, What};
use crate::subscriber::View;

type Reply = oneshot::Sender<Answered>;

impl<V: View> Actor<V> {
    /// Whether another server has the session, as far as this one has heard.
    pub(super) fn is_lost(&self) -> bool {
        let Some(peers) = self.kit.peers.as_ref().filter(|_| self.kept == Kept::InStore) else {
            return false;
        };
        peers.owner(&self.id).as_ref() != Some(peers.here())
    }

    /// Whoever was further than this server is may have been shown it by another, which has the
    /// session now. Fails if that is so, or cannot be known.
    pub(super) async fn confirm(&mut self, since: Option<Seq>) -> Result<(), LogError> {
        match since > Some(self.state.last_seq()) {
            true => self.writer.confirmed().await,
            false => Ok(()),
        }
    }

    /// Everything that happened so far is safe.
    pub(super) async fn remote(&mut self, asked: Asked, reply: Reply) -> Result<Flow, LogError> {
        let Asked { from, what, .. } = asked;
        match what {
            What::Watch { watch, since } => {
                if let Err(error) = self.confirm(since).await {
                    let _ = reply.send(Answered::NotHere);
                    return Err(error);
                }
                if let Some(feed) = self.audience.fed() {
                    feed.watch(from, watch);
                }
                let (head, live) = (self.state.last_seq(), self.live.growths().collect());
                let _ = reply.send(Answered::Stands { head, live });
            }
            What::Leave => {
                if let Some(feed) = self.audience.fed() {
                    feed.leave(&from);
                }
                let _ = reply.send(Answered::Noted);
            }
            What::Command(command) => {
                let done = self.command(command).await;
                return self.answer_remote(reply, done);
            }
            What::SettleWithPatch { wait, patch, always, by } => {
                let done = self.settle_with_patch(wait, &patch, always, by).await;
                return self.answer_remote(reply, done);
            }
            What::Undo { which, by } => {
                let (sender, done) = oneshot::channel();
                let undo = Request::Undo { which, by, reply: sender };
                let flow = Box::pin(self.handle(undo)).await;
                if let Ok(done) = done.await {
                    let _ = reply.send(Answered::Undone(done));
                }
                return flow;
            }
            What::Audit { line } => {
                self.writer.audit(&line).await?;
                let _ = reply.send(Answered::Noted);
            }
            What::CloseIfIdle => {
                // Whoever asks has nobody who watches.
                if let Some(feed) = self.audience.fed() {
                    feed.leave(&from);
                }
                let (sender, idle) = oneshot::channel();
                let close = Request::CloseIfIdle { reply: sender };
                let flow = Box::pin(self.handle(close)).await;
                let _ = reply.send(Answered::Idle(idle.await.unwrap_or(false)));
                return flow;
            }
        }
        Ok(Flow::GoOn)
    }

    /// As a client of this server is answered: once it is safe.
    fn answer_remote(&mut self, reply: Reply, done: Done) -> Result<Flow, LogError> {
        let (sender, answer) = oneshot::channel();
        tokio::spawn(async move {
            if let Ok(done) = answer.await {
                let _ = reply.send(Answered::Recorded(done));
            }
        });
        self.answer(sender, done)
    }
}
