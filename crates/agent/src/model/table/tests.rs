//! What a line means, which line counts, and what a call costs.

use proptest::prelude::*;

use super::*;

fn card(model: &str, family: Family) -> Card {
    Table::built_in().card(model, family)
}

fn file(text: &str) -> Table {
    Table::with_file(text).unwrap()
}

fn problem(text: &str) -> String {
    Table::with_file(text).unwrap_err()
}

#[test]
fn our_own_lines_can_be_read() {
    let rows = row::rows(include_str!("../models.json")).unwrap();
    assert!(rows.len() > 50, "{}", rows.len());
    assert_eq!(BUILT_IN.len(), rows.len());
}

#[test]
fn well_known_models_are_known() {
    let claude = card("claude-sonnet-4-5-20250929", Family::Anthropic);
    let price =
        Price { input: 3_000_000, output: 15_000_000, cached: 300_000, cache_written: 3_750_000 };
    assert_eq!(
        claude,
        Card {
            tokens_max: 200_000,
            window_known: true,
            output_tokens_max: 64_000,
            price: Some(price),
            images: true,
            reasoning: true,
            native_shell: false,
        }
    );
    assert_eq!(card("gpt-4.1-mini", Family::OpenAi).tokens_max, 1_047_576);
    assert_eq!(card("gemini-2.5-flash", Family::Google).price.unwrap().cached, 30_000);
    assert!(!card("gpt-4", Family::OpenAi).images);
    for model in ["codex-mini-latest", "codex-of-tomorrow"] {
        assert!(card(model, Family::OpenAi).native_shell, "{model}");
    }
    assert!(!card("gpt-5-codex", Family::OpenAi).native_shell);
}

/// A price that depends on the prompt's length, or that nobody has published, is none.
#[test]
fn a_price_is_not_guessed() {
    for model in ["gemini-2.5-pro", "gpt-5.5", "gpt-5.9-tomorrow", "claude-sonnet-4-9"] {
        assert!(Table::built_in().knows(model), "{model}");
        assert_eq!(card(model, Family::OpenAi).price, None, "{model}");
    }
}

#[test]
fn a_model_nobody_knows_has_its_family_s_card() {
    let cases = [
        (Family::OpenAi, 128_000, 16_000, true, false),
        (Family::Chat, 32_000, 4_000, false, false),
        (Family::Anthropic, 200_000, 8_000, true, false),
        (Family::Google, 1_000_000, 8_000, true, false),
        (Family::Offline, 128_000, 128_000, true, true),
    ];
    assert!(!Table::built_in().knows("llama-of-my-own"));
    for (family, tokens_max, output_tokens_max, images, reasoning) in cases {
        let price = None;
        let native_shell = false;
        let expected = Card {
            tokens_max,
            // What the offline model is, we know.
            window_known: family == Family::Offline,
            output_tokens_max,
            price,
            images,
            reasoning,
            native_shell,
        };
        assert_eq!(card("llama-of-my-own", family), expected);
    }
}

#[test]
fn the_name_itself_counts_most_then_the_longest_beginning() {
    let table = file(
        r#"[{"match": "a*", "context": 1},
            {"match": "ab*", "context": 2},
            {"match": "abc", "context": 3},
            {"match": "abc*", "context": 4},
            {"match": "*", "context": 5}]"#,
    );
    let window = |model| table.card(model, Family::Chat).tokens_max;
    let models = ["a", "ax", "ab", "abx", "abc", "abcd", "x", ""];
    assert_eq!(models.map(window), [1, 1, 2, 2, 3, 4, 5, 5]);
}

#[test]
fn the_operator_s_lines_come_first_and_may_leave_things_out() {
    let table = file(
        r#"[{"match": "claude*", "input_usd": 1, "output_usd": 2.5, "images": false},
            {"match": "gpt-4.1", "context": 9000},
            {"match": "*", "reasoning": false}]"#,
    );
    let claude = table.card("claude-sonnet-4-5", Family::Anthropic);
    let price =
        Price { input: 1_000_000, output: 2_500_000, cached: 1_000_000, cache_written: 1_000_000 };
    assert_eq!((claude.price, claude.images), (Some(price), false), "theirs, and all of it");
    assert_eq!((claude.tokens_max, claude.reasoning), (200_000, true), "ours");
    let narrow = table.card("gpt-4.1", Family::OpenAi);
    assert_eq!((narrow.tokens_max, narrow.output_tokens_max), (9000, 9000), "fits in the window");
    assert!(!table.card("o3", Family::OpenAi).reasoning, "a * is for all others");
    assert!(table.card("offline", Family::Offline).reasoning, "but not for the offline model");
    assert!(table.knows("llama-of-my-own"));
}

#[test]
fn a_slip_in_a_line_is_named() {
    let fields = "match, context, output, input_usd, output_usd, cached_usd, cache_write_usd, \
                  images, reasoning and native_shell";
    let unknown = format!("row 2 (\"b\"): contxt: there is no such field; there are {fields}");
    let tokens = "is not a whole number of tokens from 1 to 1000000000";
    let cases = [
        (r#"{"match": "a"}"#, "is not a list; use a JSON array of objects".to_owned()),
        (r#"[7]"#, "row 1: 7 is not an object".to_owned()),
        (r#"[{"context": 1}]"#, "row 1: match: is missing".to_owned()),
        (r#"[{"match": "a"}, {"match": "b", "contxt": 1}]"#, unknown),
        (
            r#"[{"match": "a"}, {"match": "a*"}, {"match": "a"}]"#,
            "row 3 (\"a\"): match: is the same as in row 1".to_owned(),
        ),
        (
            r#"[{"match": "a", "context": "64k"}]"#,
            format!("row 1 (\"a\"): context: \"64k\" {tokens}"),
        ),
        (r#"[{"match": "a", "output": 0}]"#, format!("row 1 (\"a\"): output: 0 {tokens}")),
        (r#"[{"match": "a", "output": 1.5}]"#, format!("row 1 (\"a\"): output: 1.5 {tokens}")),
        (
            r#"[{"match": "a", "context": 10, "output": 11}]"#,
            "row 1 (\"a\"): output: 11 is more than the context of 10".to_owned(),
        ),
        (
            r#"[{"match": "a", "images": "yes"}]"#,
            "row 1 (\"a\"): images: \"yes\" is not true or false".to_owned(),
        ),
        (
            r#"[{"match": "a", "input_usd": -1, "output_usd": 1}]"#,
            "row 1 (\"a\"): input_usd: -1 is not a number of dollars from 0 to 1000000".to_owned(),
        ),
        (
            r#"[{"match": "a", "input_usd": 1}]"#,
            "row 1 (\"a\"): output_usd: is missing beside input_usd".to_owned(),
        ),
        (
            r#"[{"match": "a", "cached_usd": 1}]"#,
            "row 1 (\"a\"): input_usd: is missing beside cached_usd".to_owned(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problem(text), expected, "{text}");
    }
    for name in ["\"\"", "\"a*b\"", "\"**\"", "\" a\"", "7", "null"] {
        let said = problem(&format!("[{{\"match\": {name}}}]"));
        let expected = format!(
            "row 1 ({name}): match: {name} is not a model's name or the beginning of names with \
             a * behind it"
        );
        assert_eq!(said, expected);
    }
    assert!(problem("[{").starts_with("is not JSON: "), "{}", problem("[{"));
    let long = problem(&format!("[{{\"match\": \"{}\", \"x\": 1}}]", "ö".repeat(500)));
    assert!(long.chars().count() < 250, "{long}");
}

fn usage(input: u64, cached: u64, cache_written: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        cached_tokens: cached,
        cache_written_tokens: cache_written,
        output_tokens: output,
        ..Usage::default()
    }
}

#[test]
fn a_call_costs_what_its_parts_cost() {
    let price =
        Price { input: 3_000_000, output: 15_000_000, cached: 300_000, cache_written: 3_750_000 };
    let cases = [
        (usage(0, 0, 0, 0), 0),
        (usage(1_000_000, 0, 0, 0), 3_000_000),
        (usage(0, 0, 0, 1_000_000), 15_000_000),
        // 10,000 fresh, 80,000 from the cache, 10,000 to it.
        (usage(100_000, 80_000, 10_000, 1_000), 30_000 + 24_000 + 37_500 + 15_000),
        // One token from the cache is 0.3 millionths of a dollar, two are 0.6.
        (usage(1, 1, 0, 0), 0),
        (usage(2, 2, 0, 0), 1),
        // A provider that counts wrongly does not make it negative.
        (usage(5, 10, 0, 0), 3),
    ];
    for (usage, expected) in cases {
        assert_eq!(price.cost_micros(&usage), expected, "{usage:?}");
    }
}

fn any_price() -> impl Strategy<Value = Price> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
        |(input, output, cached, cache_written)| Price { input, output, cached, cache_written },
    )
}

fn any_usage() -> impl Strategy<Value = Usage> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>())
        .prop_map(|(input, cached, written, output)| usage(input, cached, written, output))
}

proptest! {
    /// More input or more output never costs less, and no numbers are too large.
    #[test]
    fn more_never_costs_less(
        price in any_price(),
        before in any_usage(),
        input in any::<u64>(),
        output in any::<u64>(),
    ) {
        let mut after = before;
        after.input_tokens = before.input_tokens.saturating_add(input);
        after.output_tokens = before.output_tokens.saturating_add(output);
        prop_assert!(price.cost_micros(&before) <= price.cost_micros(&after));
    }

    /// With ordinary numbers the sum is exact to half a millionth of a dollar.
    #[test]
    fn the_sum_is_right(
        input in 0u64..10_000_000,
        output in 0u64..1_000_000,
        input_price in 0u64..1_000_000_000,
        output_price in 0u64..1_000_000_000,
    ) {
        let price =
            Price { input: input_price, output: output_price, cached: 0, cache_written: 0 };
        let exact = u128::from(input) * u128::from(input_price)
            + u128::from(output) * u128::from(output_price);
        let told = u128::from(price.cost_micros(&usage(input, 0, 0, output))) * PRICED_TOKENS;
        prop_assert!(told.abs_diff(exact) <= PRICED_TOKENS / 2);
    }

    /// Any text is a table or an error, and any name has a card whose answer fits its window.
    #[test]
    fn a_name_always_has_a_card(text in ".{0,60}", name in "[a-z0-9.*-]{0,12}") {
        let _ = Table::with_file(&text);
        let families = [
            Family::OpenAi, Family::Chat, Family::Anthropic, Family::Google, Family::Offline,
        ];
        for family in families {
            let card = card(&name, family);
            prop_assert!(1 <= card.output_tokens_max);
            prop_assert!(card.output_tokens_max <= card.tokens_max);
        }
    }

    /// Every name that begins with a pattern fits it, and no other.
    #[test]
    fn a_pattern_fits_what_begins_with_it(start in "[a-z-]{0,5}", rest in "[a-z-]{0,5}") {
        let table = file(&format!(r#"[{{"match": "zz{start}*", "context": 77}}]"#));
        let fits = |name: &str| table.card(name, Family::Chat).tokens_max == 77;
        let fit = format!("zz{start}{rest}");
        prop_assert!(fits(&fit));
        let other = format!("y{fit}");
        prop_assert!(!fits(&other));
    }
}
