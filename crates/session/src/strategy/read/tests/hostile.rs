//! Whatever is written, reading it ends, soon, and gives something within the bounds.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};

use super::plans::sound;
use super::*;

fn runner(cases: u32) -> TestRunner {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    TestRunner::new(ProptestConfig {
        cases: number("POLYLOOP_CASES").unwrap_or(cases),
        rng_seed: RngSeed::Fixed(number("POLYLOOP_SEED").unwrap_or(7).into()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

/// Reads it every way there is.
fn read_all(text: &str, bounds: PlanBounds) {
    if let Ok(Understanding::Question { goal }) = question(text) {
        assert!(!goal.trim().is_empty() && goal.len() <= TEXT_BYTES_MAX + 3);
    }
    if let Ok(Understanding::Information { constraints, context }) = information(text) {
        assert!(constraints.len() <= CONSTRAINTS_MAX && context.len() <= TEXT_BYTES_MAX + 3);
        assert!(constraints.iter().all(|one| one.len() <= TEXT_BYTES_MAX + 3));
    }
    for most in [1, 3, 100] {
        if let Ok(found) = thoughts(text, most) {
            assert!(found.len() <= most as usize);
            assert!(found.iter().all(|one| !one.text.trim().is_empty()));
            assert!(found.iter().all(|one| one.text.len() <= TEXT_BYTES_MAX + 3));
        }
    }
    assert!(whole_thought(text).is_none_or(|whole| !whole.text.trim().is_empty()));
    assert!(value(text).is_ok_and(|value| value <= 1_000) || value(text).is_err());
    for of in [1, 3, 100] {
        assert!(vote(text, of).is_ok_and(|at| at < of) || vote(text, of).is_err());
    }
    let _ = complex(text);
    let strict = plan(text, bounds);
    if let Ok(plan) = &strict {
        sound(plan, bounds);
    }
    match lenient_plan(text, bounds) {
        Ok(plan) => sound(&plan, bounds),
        Err(why) => {
            assert!(strict.is_err(), "what is read strictly is read: {why}");
            assert!(why.len() <= 4 * 1024);
        }
    }
    if let Err(why) = strict {
        assert!(why.len() <= 4 * 1024, "{} bytes are told", why.len());
    }
}

const BOUNDS: PlanBounds = PlanBounds { nodes: 8, layers: 6, attempts: 3, refine: 2 };

#[test]
fn a_long_text_of_anything_is_read_soon() {
    const BYTES: usize = 8 << 10;
    let parts = [
        "[",
        "{",
        "]",
        "}",
        "\"",
        "'",
        "\\",
        "[{",
        "{\"a\":",
        "[\"",
        "{'",
        "[\"\\",
        "[1,",
        "]}",
        "[]",
        "{}",
        "1 ",
        "1",
        "1. a\n",
        "- a\n",
        "not ",
        "choice 1 ",
        "8/10 ",
        "sure ",
        "//",
        "/*",
        "[//\n",
        "[ ",
        "a",
        "é",
        "🦀",
        "\n",
        " ",
        "**",
        "#",
        "-",
        ".",
        "\"nodes\": [",
        "{\"nodes\":[{",
        "</think>",
        "```",
        "0.",
        "1:",
        "(final)",
        "[,",
        "[[1,2],",
        "{\"a\":1}",
        "\u{0}",
        "\\u",
        "\"\\ud800",
        "{\"nodes\":[\"a\"]}",
        "[\"a\",",
        "best 1 ",
    ];
    let began = Instant::now();
    for part in parts {
        let many = part.repeat(BYTES / part.len());
        for text in [many.clone(), format!("[{many}"), format!("{{\"nodes\": [\"{many}\"]}}")] {
            read_all(&text, BOUNDS);
        }
    }
    for part in ["[", "{\"a\":[\"", "1. a\n", "sure 8/10 "] {
        let _ = plan(&part.repeat((1 << 20) / part.len()), BOUNDS);
        let _ = value(&part.repeat((1 << 20) / part.len()));
    }
    // What is quadratic would take much longer.
    assert!(began.elapsed() < Duration::from_secs(200), "{:?}", began.elapsed());
}

#[test]
fn ten_thousand_nodes_are_read_soon() {
    let began = Instant::now();
    let name = |kind: &str, at: usize| match kind {
        "same" => "a".to_owned(),
        "long" => format!("{}{at}", "x".repeat(200)),
        _ => format!("n{at}"),
    };
    for kind in ["same", "long", "own"] {
        for needs in ["none", "before", "after", "all", "self", "round"] {
            let count = match (kind, needs) {
                (_, "all") => 200,
                ("own", "round" | "before") | ("same", "none") => 10_000,
                _ => 1_000,
            };
            let nodes = (0..count).map(|at| {
                let needs: Vec<String> = match needs {
                    "before" => (at > 0).then(|| name(kind, at - 1)).into_iter().collect(),
                    "after" => vec![name(kind, at + 1)],
                    "all" => (0..count).map(|other| name(kind, other)).collect(),
                    "self" => vec![name(kind, at)],
                    "round" => vec![name(kind, (at + 1) % count)],
                    _ => Vec::new(),
                };
                serde_json::json!({"id": name(kind, at), "task": "t", "needs": needs})
            });
            let nodes: Vec<Value> = nodes.collect();
            let text = serde_json::json!({ "nodes": nodes }).to_string();
            for bounds in [BOUNDS, PlanBounds { nodes: 1, layers: 1, attempts: 0, refine: 0 }] {
                sound(&lenient_plan(&text, bounds).unwrap(), bounds);
            }
            let wide = PlanBounds { nodes: 20_000, layers: 20_000, ..BOUNDS };
            let plan = lenient_plan(&text, wide).unwrap();
            assert_eq!(plan.nodes.len(), count);
        }
    }
    assert!(began.elapsed() < Duration::from_secs(200), "{:?}", began.elapsed());
}

#[test]
fn deep_and_huge_values_are_no_harm() {
    for depth in [50, 99, 100, 101, 127, 128, 129, 10_000] {
        let text = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        read_all(&text, BOUNDS);
        let text = format!("{}1{}", "{\"nodes\":".repeat(depth), "}".repeat(depth));
        read_all(&text, BOUNDS);
    }
    for number in ["1e999", "-1e999", "18446744073709551616", "0.0000000001", "1e-999", "00", "1_0"]
    {
        read_all(&format!("{{\"score\": {number}}}"), BOUNDS);
        read_all(
            &format!("[{{\"id\": {number}, \"task\": \"a\", \"attempts\": {number}}}]"),
            BOUNDS,
        );
        read_all(&format!("{number}/10\n{number}%\nchoice {number}\n{number}"), BOUNDS);
    }
}

/// Pieces of what models write, and of nothing.
fn anything() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "'",
        "\\",
        "\n",
        " ",
        "  - ",
        "1. ",
        "2) ",
        "**",
        "```json\n",
        "```",
        "\"nodes\"",
        "\"id\"",
        "\"task\"",
        "\"needs\"",
        "\"thoughts\"",
        "\"thought\"",
        "\"final\"",
        "\"score\"",
        "\"best\"",
        "\"edges\"",
        "true",
        "null",
        "True",
        "a",
        "\"a\"",
        "\"b\"",
        "\"c\"",
        "sure",
        "likely",
        "not ",
        "isn't ",
        "8/10",
        "0.5",
        "7",
        "%",
        "choice ",
        "best ",
        "simple",
        "complex",
        "(final)",
        "…",
        "é",
        "🦀",
        "读",
        "//",
        "/*",
        "*/",
        "\\u00e9",
        "\\ud83e\\udd80",
        "\\ud83e",
        "-",
        "1e5",
        "</think>",
        "\u{200b}",
        "\t",
        "###",
    ]);
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

#[test]
fn nothing_that_is_written_is_read_out_of_bounds() {
    let bounds =
        (0..6_u32, 0..5_u32, 0..4_u32, 0..3_u32).prop_map(|(nodes, layers, attempts, refine)| {
            PlanBounds { nodes, layers, attempts, refine }
        });
    let played =
        runner(500).run(&(anything(), any::<String>(), bounds), |(text, other, bounds)| {
            read_all(&text, bounds);
            read_all(&other, bounds);
            Ok(())
        });
    if let Err(error) = played {
        panic!("{error}");
    }
}

/// A plan of any shape: names that may be doubled, edges that may be of anything.
fn plans() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    vec((0..12_u8, vec(0..14_u8, 0..5)), 1..14)
}

#[test]
fn any_plan_is_made_sound() {
    let bounds = (1..16_u32, 1..8_u32);
    let played = runner(500).run(&(plans(), bounds), |(nodes, (most, layers))| {
        let nodes: Vec<Value> = nodes
            .iter()
            .map(|(id, needs)| {
                let needs: Vec<String> = needs.iter().map(|need| format!("n{need}")).collect();
                serde_json::json!({"id": format!("n{id}"), "task": "t", "needs": needs})
            })
            .collect();
        let bounds = PlanBounds { nodes: most, layers, ..BOUNDS };
        let text = serde_json::json!({ "nodes": nodes }).to_string();
        sound(&lenient_plan(&text, bounds).unwrap(), bounds);
        if let Ok(plan) = plan(&text, bounds) {
            sound(&plan, bounds);
            prop_assert_eq!(plan.nodes.len(), nodes.len(), "strictly nothing is merged");
        }
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}

/// How a well-behaved model wraps what it was asked for.
fn wrapped(json: &str, way: u8) -> String {
    match way % 5 {
        0 => json.to_owned(),
        1 => format!("```json\n{json}\n```"),
        2 => format!("Here is what you asked for:\n\n{json}\n\nLet me know!"),
        3 => format!("<think>I could write [1] or {{}}.</think>\n```\n{json}\n```"),
        _ => format!("Sure! {json}"),
    }
}

#[test]
fn what_a_good_writer_writes_is_read_back() {
    let word = "[a-zé读🦀\"\\\\{}\\[\\],:' -]{0,12}[a-z]";
    let thoughts_of = vec((word, any::<bool>()), 1..5);
    let edges = vec(any::<bool>(), 36);
    let all = (thoughts_of, edges, 1..8_usize, any::<u8>(), 0..=10_u32, any::<bool>());
    let played = runner(500).run(&all, |(wanted, edges, count, way, score, pretty)| {
        let write = |value: &Value| {
            let text = match pretty {
                true => serde_json::to_string_pretty(value).unwrap(),
                false => value.to_string(),
            };
            wrapped(&text, way)
        };
        let listed = wanted.iter().map(|(text, last)| {
            serde_json::json!({"thought": text, "final": last})
        });
        let json = serde_json::json!({"thoughts": listed.collect::<Vec<_>>()});
        let mut want: Vec<Thought> = Vec::new();
        for (text, last) in &wanted {
            let text = text.trim();
            if !want.iter().any(|known| &*known.text == text) {
                want.push(Thought { text: text.into(), last: *last });
            }
        }
        prop_assert_eq!(thoughts(&write(&json), 5), Ok(want));
        // Each may need those before it.
        let needs = |at: usize| (0..at).filter(|need| edges[at * (at - 1) / 2 + need]).collect();
        let needs: Vec<Vec<usize>> =
            (0..count).map(|at| if at == 0 { Vec::new() } else { needs(at) }).collect();
        let nodes: Vec<Value> = (0..count)
            .map(|at| {
                let names: Vec<String> = needs[at].iter().map(|need| format!("n{need}")).collect();
                serde_json::json!({"id": format!("n{at}"), "task": format!("do {at}"), "needs": names})
            })
            .collect();
        let bounds = PlanBounds { nodes: 8, layers: 8, ..BOUNDS };
        let read = plan(&write(&serde_json::json!({ "nodes": nodes })), bounds).unwrap();
        prop_assert!(read.repaired.is_empty());
        let read: Vec<Vec<usize>> = read
            .nodes
            .iter()
            .map(|node| node.needs.iter().map(|need| *need as usize).collect())
            .collect();
        prop_assert_eq!(read, needs);
        for text in [format!("{score}"), format!("Score: {score}/10"), format!("**{score}/10**")] {
            prop_assert_eq!(value(&text), Ok(score * 100), "{}", text);
        }
        let best = score as usize % count;
        for text in [format!("{}", best + 1), format!("The best is choice {}.", best + 1)] {
            prop_assert_eq!(vote(&text, count), Ok(best), "{}", text);
        }
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}
