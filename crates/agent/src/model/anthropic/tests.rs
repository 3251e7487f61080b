#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::model::json::testing::Golden;

mod answers;
mod refusals;
mod requests;

fn golden() -> Golden {
    Golden::new("anthropic")
}

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
