//! What an edit is about to do to files: told, and recorded, before it is done.

use bytes::Bytes;
use polyloop_session::Text;
use polyloop_session::item::FileChange;
use tokio::sync::{mpsc, oneshot};

/// Everything that is needed to take an edit back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touches {
    pub files: Vec<FileChange>,
    /// Directories that are not there yet, outermost first.
    pub made: Vec<Text>,
    /// Directories that will be gone, outermost first.
    pub removed: Vec<Text>,
    /// Contents that `before_blob` names, by their hash.
    pub contents: Vec<(Text, Bytes)>,
}

/// Says when whoever reads the stream has come back for more: what it was given is recorded.
pub(super) type Recorded = oneshot::Sender<()>;

/// How work on a thread of its own tells what it is about to touch.
pub(super) struct Notes {
    pub sender: mpsc::Sender<(Touches, Recorded)>,
}

impl Notes {
    /// Returns when it is recorded; an error if nobody is there to do so, and then nothing may be
    /// touched. Blocks.
    pub(super) fn record(&self, touches: Touches) -> Result<(), String> {
        let (recorded, waited) = oneshot::channel();
        let sent = self.sender.blocking_send((touches, recorded)).is_ok();
        match sent && waited.blocking_recv().is_ok() {
            true => Ok(()),
            false => Err("not done: the session ended before it was recorded".to_owned()),
        }
    }
}
