//! What a client asks the model to do, in words that stand in its message: whatever the server
//! puts around them, the last ones count.

use memchr::memmem;

use crate::piece::{self, Pieces};

const OPEN: &[u8] = b"@@";
const TOOL_RESULT: &[u8] = b"\"role\":\"tool\"";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// So many chunks of so many bytes; 0 µs apart means as fast as they are taken. Each `number`
    /// above 0 is streamed once: who asks again, to sum up what was said, gets a word.
    Stream { chunks: u64, bytes: usize, every_us: u64, number: u64 },
    /// So many calls of a tool, one after the other, then a word; `done` of them have their results.
    Tools { rounds: usize, tool: Tool, done: usize },
}

/// Both print a word; of one a server may know that it only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Plain,
    Sandboxed,
}

impl Tool {
    /// The shell command of the call.
    pub fn command(self) -> &'static str {
        match self {
            Tool::Plain => "echo hi",
            Tool::Sandboxed => "eval echo hi",
        }
    }
}

impl Script {
    /// What is asked for most.
    pub fn stream(chunks: u64, bytes: usize, every_us: u64) -> Script {
        Script::Stream { chunks, bytes, every_us, number: 0 }
    }

    /// What the answer is made of.
    pub fn pieces(self) -> Pieces {
        match self {
            Script::Stream { chunks, bytes, .. } => Pieces::new(chunks, bytes),
            Script::Tools { .. } => Pieces::new(1, piece::BYTES_MIN),
        }
    }

    pub fn text(self) -> String {
        match self {
            Script::Stream { chunks, bytes, every_us, number } => {
                format!("@@stream {chunks} {bytes} {every_us} {number}@@")
            }
            Script::Tools { rounds, tool: Tool::Plain, .. } => format!("@@tools {rounds}@@"),
            Script::Tools { rounds, tool: Tool::Sandboxed, .. } => {
                format!("@@sandboxed {rounds}@@")
            }
        }
    }

    /// The last script in a request's body.
    pub fn of(body: &[u8]) -> Option<Script> {
        let end = memmem::rfind(body, OPEN)?;
        let start = memmem::rfind(&body[..end], OPEN)? + OPEN.len();
        let words = std::str::from_utf8(&body[start..end]).ok()?;
        let mut words = words.split_ascii_whitespace();
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        match kind {
            "stream" => Some(Script::Stream {
                chunks: number()?,
                bytes: usize::try_from(number()?).ok()?,
                every_us: number()?,
                number: number()?,
            }),
            "tools" | "sandboxed" => {
                let rounds = usize::try_from(number()?).ok()?;
                let done = memmem::find_iter(&body[end..], TOOL_RESULT).count();
                let tool = if kind == "tools" { Tool::Plain } else { Tool::Sandboxed };
                Some(Script::Tools { rounds, tool, done })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_script_counts() {
        let (one, two) = (
            Script::Stream { chunks: 5, bytes: 32, every_us: 20_000, number: 7 },
            Script::Tools { rounds: 3, tool: Tool::Plain, done: 0 },
        );
        let body = format!("{{\"a\":\"{}\",\"b\":\"{}\"}}", one.text(), two.text());
        assert_eq!(Script::of(body.as_bytes()), Some(two));
        assert_eq!(Script::of(one.text().as_bytes()), Some(one));
        assert_eq!(Script::of(b"nothing @@ here"), None);
    }

    #[test]
    fn results_of_tools_are_counted() {
        let tool = Tool::Sandboxed;
        let script = Script::Tools { rounds: 3, tool, done: 0 }.text();
        let body = format!("{script} {{\"role\":\"tool\"}} {{\"role\":\"tool\"}}");
        assert_eq!(Script::of(body.as_bytes()), Some(Script::Tools { rounds: 3, tool, done: 2 }));
    }
}
