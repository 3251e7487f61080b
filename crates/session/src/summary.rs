//! What a call for a summary is told, so that it fits the window itself.
//!
//! Long outputs by their ends, pictures by their name; where that is not enough all long texts by
//! their ends, and at last the oldest messages not at all. A call is never parted from its result.

use crate::history::{AssistantPart, Message};
use crate::id::Text;
use crate::item::Part;

/// Of a tool's output, in the prompt for a summary.
pub const SUMMARISED_OUTPUT_BYTES_MAX: usize = 2_000;
/// However small the window is.
pub const SUMMARISED_BYTES_MIN: usize = 16_000;
/// What a token is taken to stand for at most.
const TOKEN_BYTES_MAX: u128 = 3;
/// No text is made shorter than this.
const TEXT_BYTES_MIN: usize = 500;
/// Left for the summary itself: one part of the window in so many.
const ANSWER_SHARE: u64 = 8;

/// As much as fits a window beside what stands in every prompt. `tokens` is what all of it was
/// counted as.
pub(crate) fn bounded(
    mut messages: Vec<Message>,
    tokens: u64,
    tokens_max: u64,
    overhead: u64,
) -> Vec<Message> {
    let room = tokens_max.saturating_sub(overhead).saturating_sub(tokens_max / ANSWER_SHARE);
    let room = room_bytes(room, text_bytes(&messages), tokens).max(SUMMARISED_BYTES_MIN);
    messages.iter_mut().for_each(plain);
    let mut bytes_max = room;
    while bytes(&messages) > room && bytes_max > TEXT_BYTES_MIN {
        bytes_max = (bytes_max / 2).max(TEXT_BYTES_MIN);
        messages.iter_mut().for_each(|message| shorten(message, bytes_max));
    }
    without_oldest(messages, room)
}

/// So many tokens of such texts: of digits or code a token is less than of words.
fn room_bytes(room: u64, bytes: usize, tokens: u64) -> usize {
    let room = u128::from(room);
    let most = room.saturating_mul(TOKEN_BYTES_MAX);
    let as_these = room.saturating_mul(bytes as u128) / u128::from(tokens.max(1));
    usize::try_from(as_these.min(most)).unwrap_or(usize::MAX)
}

/// For a summary the ends of a long output are enough, and that there was a picture.
fn plain(message: &mut Message) {
    match message {
        Message::User(parts) => {
            for part in parts.iter_mut() {
                *part = Part::Text { text: part.shown() };
            }
        }
        Message::Assistant(_) => {}
        Message::ToolResult { output, .. } => ends(output, SUMMARISED_OUTPUT_BYTES_MAX),
    }
}

/// What a provider must get back as it was is left alone, and so are arguments, which are JSON.
fn shorten(message: &mut Message, bytes_max: usize) {
    match message {
        Message::User(parts) => {
            for part in parts {
                if let Part::Text { text } = part {
                    ends(text, bytes_max);
                }
            }
        }
        Message::Assistant(parts) => {
            for part in parts {
                if let AssistantPart::Text { text, opaque: None } = part {
                    ends(text, bytes_max);
                }
            }
        }
        Message::ToolResult { output, .. } => ends(output, bytes_max),
    }
}

/// The beginning and the end of a long text.
fn ends(text: &mut Text, bytes_max: usize) {
    if text.len() <= bytes_max {
        return;
    }
    let half = bytes_max / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - head.len() - tail.len();
    *text = format!("{head}\n[… {left_out} bytes left out …]\n{tail}").into();
}

/// Leaves the oldest messages out until the rest fits, but for the first: it may be the summary of
/// all before it.
fn without_oldest(mut messages: Vec<Message>, room: usize) -> Vec<Message> {
    // It may also be a message with calls.
    let mut keep = 1;
    while matches!(messages.get(keep), Some(Message::ToolResult { .. })) {
        keep += 1;
    }
    let (mut left, mut from) = (bytes(&messages), keep);
    while left > room && from < messages.len() {
        left -= size(&messages[from]);
        from += 1;
        // A result goes with its call.
        while let Some(message @ Message::ToolResult { .. }) = messages.get(from) {
            left -= size(message);
            from += 1;
        }
    }
    if from > keep {
        let told = format!("[… {} messages left out …]", from - keep);
        let told = Message::User(vec![Part::Text { text: told.into() }]);
        messages.splice(keep..from, [told]);
    }
    messages
}

/// Of all that they hold, pictures too.
pub fn bytes(messages: &[Message]) -> usize {
    messages.iter().map(size).sum()
}

/// Pictures are counted otherwise.
fn text_bytes(messages: &[Message]) -> usize {
    let pictures = messages.iter().flat_map(|message| match message {
        Message::User(parts) => parts.as_slice(),
        Message::Assistant(_) | Message::ToolResult { .. } => &[],
    });
    let pictures = pictures.map(|part| match part {
        Part::Text { .. } => 0,
        Part::Image { data, .. } => data.len(),
    });
    bytes(messages) - pictures.sum::<usize>()
}

fn size(message: &Message) -> usize {
    match message {
        Message::User(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text { text } => text.len(),
                Part::Image { data, .. } => data.len(),
            })
            .sum(),
        Message::Assistant(parts) => parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text { text, opaque }
                | AssistantPart::Reasoning { text, opaque } => {
                    text.len() + opaque.as_ref().map_or(0, |opaque| opaque.json.len())
                }
                AssistantPart::ToolCall { args, name, opaque, .. } => {
                    args.len() + name.len() + opaque.as_ref().map_or(0, |opaque| opaque.json.len())
                }
            })
            .sum(),
        Message::ToolResult { output, .. } => output.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: String) -> Message {
        Message::User(vec![Part::Text { text: text.into() }])
    }

    /// A window of 40,000 tokens, most of it for messages of which each token is so many bytes.
    fn told_tokens(token_bytes: usize) -> usize {
        let text = "x".repeat(1_000 * token_bytes);
        let messages: Vec<Message> = (0..100).map(|_| user(text.clone())).collect();
        bytes(&bounded(messages, 100_000, 40_000, 5_000)) / token_bytes
    }

    #[test]
    fn what_is_told_fits_whatever_a_token_is() {
        for token_bytes in 1..=4 {
            let told = told_tokens(token_bytes);
            assert!((15_000..=30_000).contains(&told), "{told} tokens of {token_bytes} bytes");
        }
    }

    #[test]
    fn a_picture_says_nothing_about_texts() {
        let data: Text = "A".repeat(1_000_000).into();
        let picture = Part::Image { media_type: "image/png".into(), data };
        let messages = vec![Message::User(vec![picture]), user("x".repeat(60_000))];
        assert!(bytes(&bounded(messages, 61_600, 40_000, 0)) <= 35_000);
    }
}
