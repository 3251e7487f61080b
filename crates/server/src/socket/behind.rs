//! Brings a client up to date that takes less than is made.
//!
//! Its queue is short and was full, so it was let go. What it missed is read from the log at the
//! pace at which it takes it, as for one who comes back; what grew meanwhile comes in one piece. So
//! a slow client costs a queue and a page, however slow it is.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_agent::actor::Attached;
use polyloop_agent::sessions::Handle;
use polyloop_agent::subscriber::{Presence, Subscription};
use polyloop_dialects::{Cursor, Dialect};

use super::attach::{complaint, power};
use crate::catch_up::{Batch, CatchUp, Moment};
use crate::view::{Bundle, DialectKind, DialectView};

/// What catching up came to, for now.
pub(super) enum Caught {
    Some(Box<Catching>, Batch),
    All(Subscription<Arc<Bundle>>),
    Failed(String),
}

/// On the way.
pub(super) struct Catching {
    catch_up: CatchUp,
    subscription: Subscription<Arc<Bundle>>,
}

impl Catching {
    pub(super) fn go_on(self: Box<Self>) -> BoxFuture<'static, Caught> {
        self.next().boxed()
    }

    async fn next(mut self: Box<Self>) -> Caught {
        match self.catch_up.next().await {
            Ok(Some(batch)) => Caught::Some(self, batch),
            Ok(None) => Caught::All(self.subscription),
            Err(error) => Caught::Failed(error.to_string()),
        }
    }
}

/// Begins after `cursor`, which is the last that the client was sent.
pub(super) fn catch_up(
    handle: Handle<DialectView>,
    dialect: &'static dyn Dialect,
    cursor: Cursor,
) -> BoxFuture<'static, Caught> {
    async move {
        let (kind, power) = (DialectKind(dialect), power(dialect.power()));
        let attached = handle.attach(kind, Some(cursor.seq), power, Presence::Client).await;
        let Attached { head, from, live, waiting, subscription } = match attached {
            Ok(attached) => attached,
            Err(error) => return Caught::Failed(complaint(&error).error),
        };
        let moment = Moment { head, from, live, waiting };
        let mut catch_up = CatchUp::new(dialect, &handle, moment, Some(cursor));
        catch_up.leave_out_reminders();
        Box::new(Catching { catch_up, subscription }).next().await
    }
    .boxed()
}
