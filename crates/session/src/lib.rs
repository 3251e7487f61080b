//! What a session *is*: one log, the state folded from it, and what to do next.
//!
//! Pure. Nothing in this crate performs I/O, reads a clock, awaits, or makes a random id; facts
//! from outside come in as arguments and become events. `docs/EVENTS.md` maps every message of
//! every dialect to the events defined here.

pub mod absorb;
pub mod budget;
pub mod command;
pub mod context;
pub mod decide;
pub mod event;
pub mod growth;
pub mod history;
pub mod id;
pub mod item;
pub mod live;
pub mod next;
pub mod policy;
pub mod recover;
pub mod retry;
pub mod room;
pub mod shown;
pub mod state;
pub mod strategy;
pub mod summary;
pub mod todos;
pub mod undo;
pub mod wait;

pub use absorb::{Answerable, Proposal, Report, absorb};
pub use command::{Command, Delivery, Refusal, Target, WaitRef};
pub use decide::{Limits, decide};
pub use event::{Event, LogEntry, Raw, Update};
pub use growth::{Growth, Stream};
pub use id::{CallId, ItemId, MessageId, Seq, SessionId, Text, Timestamp, TurnId, WaitId};
pub use live::Live;
pub use next::{Next, Step, next};
pub use recover::recover;
pub use retry::{Chance, Heal};
pub use state::State;
