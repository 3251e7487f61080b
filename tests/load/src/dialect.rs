//! The dialects, as far as one who watches must know them: where to connect, which frames carry the
//! answer's text, which one ends a turn.

use memchr::memmem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Unified,
    Agentloop,
    Loom,
    /// Its clients get each answer whole, at its end.
    Chat,
}

pub const ALL: [Dialect; 4] = [Dialect::Unified, Dialect::Agentloop, Dialect::Loom, Dialect::Chat];

impl Dialect {
    /// Where a session is watched.
    pub fn path(self, session: &str) -> String {
        let name = match self {
            Dialect::Unified => "unified",
            Dialect::Agentloop => "agentloop",
            Dialect::Loom => "loom",
            Dialect::Chat => "chat",
        };
        format!("/{name}?session_id={session}")
    }

    /// Others may repeat it.
    pub fn is_text(self, frame: &[u8]) -> bool {
        has(
            frame,
            match self {
                Dialect::Unified => b"\"assistant_message\"",
                Dialect::Agentloop => b"\"response_item\"",
                Dialect::Loom => b"\"message_chunk\"",
                Dialect::Chat => b"\"agent_message\"",
            },
        )
    }

    pub fn is_end(self, frame: &[u8]) -> bool {
        has(
            frame,
            match self {
                Dialect::Unified => b"\"turn_completed\"",
                Dialect::Agentloop => b"\"agent_finished\"",
                Dialect::Loom => b"\"run_end\"",
                Dialect::Chat => b"\"agent_message\"",
            },
        )
    }

    /// What one who comes is told before anything happens.
    pub fn is_greeting(self, frame: &[u8]) -> bool {
        self == Dialect::Unified && has(frame, b"\"session_init\"")
    }

    pub fn is_failure(self, frame: &[u8]) -> bool {
        has(
            frame,
            match self {
                Dialect::Unified => b"\"turn_failed\"",
                Dialect::Agentloop | Dialect::Loom | Dialect::Chat => b"\"type\":\"error\"",
            },
        )
    }
}

fn has(frame: &[u8], word: &[u8]) -> bool {
    memmem::find(frame, word).is_some()
}
