//! What an answer's items are, and which events carry more of them.

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Message,
    Reasoning,
    Call,
    /// Goes back as it came, and is never looked into.
    Unknown,
}

/// What in an item grows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    Text,
    Refusal,
    Summary,
    Thought,
    Args,
}

impl Channel {
    pub fn kind(self) -> Kind {
        match self {
            Channel::Text | Channel::Refusal => Kind::Message,
            Channel::Summary | Channel::Thought => Kind::Reasoning,
            Channel::Args => Kind::Call,
        }
    }

    /// What counts its parts.
    pub fn index(self) -> &'static str {
        match self {
            Channel::Text | Channel::Refusal | Channel::Thought => "content_index",
            Channel::Summary => "summary_index",
            Channel::Args => "",
        }
    }
}

/// Whether a text is more of a part or all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Delta,
    Whole,
}

/// The events that carry text: what of, how much, and under which name.
pub fn growth(event: &str) -> Option<(Channel, Extent, &'static str)> {
    Some(match event {
        "response.output_text.delta" => (Channel::Text, Extent::Delta, "delta"),
        "response.output_text.done" => (Channel::Text, Extent::Whole, "text"),
        "response.refusal.delta" => (Channel::Refusal, Extent::Delta, "delta"),
        "response.refusal.done" => (Channel::Refusal, Extent::Whole, "refusal"),
        "response.reasoning_summary_text.delta" => (Channel::Summary, Extent::Delta, "delta"),
        "response.reasoning_summary_text.done" => (Channel::Summary, Extent::Whole, "text"),
        "response.reasoning_text.delta" => (Channel::Thought, Extent::Delta, "delta"),
        "response.reasoning_text.done" => (Channel::Thought, Extent::Whole, "text"),
        "response.function_call_arguments.delta" => (Channel::Args, Extent::Delta, "delta"),
        "response.function_call_arguments.done" => (Channel::Args, Extent::Whole, "arguments"),
        _ => return None,
    })
}
