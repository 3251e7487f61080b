//! Tokens: what a script says of them, and an honest estimate of the rest.
//!
//! A token is taken to be four characters, as providers say of English text.

use crate::reply::{Block, Reply};

const TOKEN_CHARS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The whole prompt, with what was read from a cache or written to it.
    pub input: u64,
    /// All that the model wrote, with its reasoning.
    pub output: u64,
    pub cached: u64,
    pub cache_written: u64,
    pub reasoning: u64,
}

pub fn tokens(chars: usize) -> u64 {
    (chars as u64).div_ceil(TOKEN_CHARS)
}

impl Usage {
    pub fn of(reply: &Reply, input_tokens: u64) -> Usage {
        let given = reply.usage;
        let (mut thought, mut written) = (0, 0);
        for block in &reply.blocks {
            match block {
                Block::Think(think) => thought += tokens(think.think.chars().count()),
                Block::Redacted(redacted) => thought += tokens(redacted.redacted.len()),
                Block::Say(say) => written += tokens(say.say.chars().count()),
                Block::Call(call) => written += tokens(call.call.len() + call.args.text.len()),
                Block::Shell(shell) => written += tokens(shell.shell.join(" ").len()),
                Block::Item(item) => written += tokens(item.item.values().map(json_chars).sum()),
            }
        }
        let (cached, cache_written) = (given.cached.unwrap_or(0), given.cache_written.unwrap_or(0));
        let output = given.output.unwrap_or(given.reasoning.unwrap_or(thought) + written);
        Usage {
            input: given.input.unwrap_or(input_tokens.max(cached + cache_written)),
            output,
            cached,
            cache_written,
            reasoning: given.reasoning.unwrap_or(thought.min(output)),
        }
    }

    pub fn total(&self) -> u64 {
        self.input + self.output
    }
}

fn json_chars(value: &serde_json::Value) -> usize {
    value.to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::GivenUsage;

    #[test]
    fn estimates_what_is_not_given() {
        let mut reply = Reply::say("12345678");
        reply.blocks.push(Block::think("1234"));
        let usage = Usage::of(&reply, 10);
        assert_eq!((usage.input, usage.output, usage.reasoning), (10, 3, 1));
        reply.usage = GivenUsage { cached: Some(50), output: Some(0), ..GivenUsage::default() };
        let usage = Usage::of(&reply, 10);
        assert_eq!((usage.input, usage.output, usage.reasoning), (50, 0, 0));
    }
}
