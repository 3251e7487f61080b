//! Messages that wait for their turn.

use polyloop_session::event::Origin;
use polyloop_session::item::Part;
use polyloop_session::wait::Who;
use polyloop_session::{MessageId, Text};

use super::parts::{Parts, body, entry_id};
use super::{UnifiedEncoder, said};
use crate::conn::Out;
use crate::unified::wire::{MessageDropped, MessageName, MessageQueued};

/// More than any queue holds; of a longer one the oldest are forgotten, and with them only the
/// extras of their turns.
const QUEUED_MAX: usize = 10_000;

pub(super) struct Queued {
    pub content: Vec<Part>,
    pub by: String,
    pub client_ref: Option<Text>,
    /// Its turn could not begin at once, which clients are told.
    pub waits: bool,
    /// It went out in a message that somebody read.
    read: bool,
}

impl Queued {
    pub(super) fn new(
        content: &[Part],
        origin: &Origin,
        client_ref: Option<&Text>,
        waits: bool,
    ) -> Queued {
        Queued {
            content: content.to_vec(),
            by: origin.who.describe(),
            client_ref: client_ref.cloned(),
            waits,
            read: false,
        }
    }

    fn told(&self, id: MessageId) -> MessageQueued<'_> {
        MessageQueued {
            message_id: MessageName(id),
            message: said(&self.content),
            by: &self.by,
            client_ref: self.client_ref.as_deref(),
        }
    }
}

impl UnifiedEncoder {
    pub(super) fn message_queued(
        &mut self,
        id: MessageId,
        mut queued: Queued,
        out: &mut Parts<'_, '_>,
    ) {
        if queued.waits {
            out.tell(&queued.told(id));
            queued.read = !out.out.is_muted();
        }
        if self.queued.len() >= QUEUED_MAX {
            self.queued.pop_first();
        }
        self.queued.insert(id, queued);
    }

    pub(super) fn message_dropped(&mut self, id: MessageId, by: &Who, out: &mut Parts<'_, '_>) {
        let dropped = self.queued.remove(&id);
        out.tell(&MessageDropped {
            message_id: MessageName(id),
            by: by.describe(),
            client_ref: dropped.as_ref().and_then(|queued| queued.client_ref.as_deref()),
        });
    }

    /// What still waits and was not told by this encoder, with the ids that it has always had.
    pub(super) fn tell_queue(&mut self, out: &mut Out<'_>) {
        let waiting = self.queued.iter_mut().filter(|(_, queued)| queued.waits && !queued.read);
        for (id, queued) in waiting {
            let text = body(entry_id(id.0, 0), &queued.told(*id), out);
            out.message(text);
            queued.read = !out.is_muted();
        }
    }
}
