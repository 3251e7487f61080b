//! Anthropic's Messages interface. `golden/models/anthropic` holds requests and answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::model::testing::Interface;

mod answers;
mod refusals;
mod requests;

const API: Interface = Interface {
    api: &Anthropic,
    folder: "anthropic",
    model: "claude-sonnet-4-5-20250929",
    instructions: "You help with code.",
    tools: ["Runs a command.", "Changes files."],
    words: WORDS,
    keeps_objects: false,
};

const WORDS: &str = r#"
    type index message message_start message_delta message_stop usage delta content_block
    content_block_start content_block_delta content_block_stop ping error text text_delta
    thinking thinking_delta signature signature_delta redacted_thinking data tool_use id name
    input input_json_delta partial_json citations_delta server_tool_use stop_reason stop_details
    refusal category explanation end_turn max_tokens overloaded_error input_tokens output_tokens
    cache_read_input_tokens cache_creation_input_tokens output_tokens_details thinking_tokens
    bash {"a":1}
"#;

#[test]
fn it_is_reached_where_anthropic_is() {
    assert_eq!((Anthropic.name(), Anthropic.provider()), ("anthropic", "Anthropic"));
    assert_eq!(Anthropic.path("claude/x?"), "/v1/messages");
    assert_eq!(Anthropic.models_path(), "/v1/models?limit=1000");
    assert_eq!(Anthropic.headers(), [("anthropic-version", "2023-06-01")]);
}

#[test]
fn a_generation_is_read_from_a_name() {
    let known = [
        ("claude-opus-4-8", Some((4, 8))),
        ("claude-opus-5", Some((5, 0))),
        ("claude-sonnet-4-5-20250929", Some((4, 5))),
        ("claude-opus-4-20250514", Some((4, 0))),
        ("claude-3-7-sonnet-latest", Some((3, 7))),
        ("anthropic/claude-sonnet-5.5", Some((5, 5))),
        ("us.anthropic.claude-opus-4-6-v1:0", Some((4, 6))),
        ("claude-haiku-4-5@20251001", Some((4, 5))),
        ("claude-mythos-preview", None),
        ("qwen3-8b", None),
        ("", None),
    ];
    for (model, wanted) in known {
        assert_eq!(version(model), wanted, "{model}");
    }
}

#[test]
fn newer_models_think_by_themselves() {
    let adaptive = [
        "claude-opus-4-6",
        "claude-sonnet-4-6",
        "claude-opus-5",
        "claude-haiku-5-5",
        "claude-fable-5-1",
        "claude-mythos-preview",
    ];
    let told = ["claude-haiku-4-5", "claude-opus-4-5-20251101", "claude-3-7-sonnet-20250219", "x"];
    assert!(adaptive.iter().all(|model| thinks_adaptively(model)));
    assert!(!told.iter().any(|model| thinks_adaptively(model)));
    let binding = ["claude-fable-5-1", "claude-opus-5-5", "claude-haiku-5-5", "claude-opus-6"];
    assert!(binding.iter().all(|model| binds_reasoning(model)));
    assert!(!["claude-opus-5", "claude-fable-5", "x"].iter().any(|model| binds_reasoning(model)));
}
