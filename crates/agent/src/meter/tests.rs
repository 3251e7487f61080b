use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::*;

fn told(meter: &Meter) -> String {
    let mut registry = Registry::default();
    meter.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[test]
fn a_model_that_nobody_named_is_another() {
    let meter = Meter::new(vec![("known-1".into(), "openai")]);
    for name in ["known-1", "made-up-1", "made-up-2", "known-1\"} 7\n"] {
        let usage = Usage { input_tokens: 5, ..Usage::default() };
        meter.model(name, "openai").used(&usage);
    }
    let text = told(&meter);
    let line = |model| {
        let labels = format!("provider=\"openai\",model=\"{model}\",direction=\"input\"");
        text.lines().find(|line| line.contains(&labels)).map(str::to_owned)
    };
    assert!(line("known-1").unwrap().ends_with(" 5"), "{text}");
    assert!(line(OTHER).unwrap().ends_with(" 15"), "{text}");
    assert!(!text.contains("made-up"), "{text}");
}

#[test]
fn a_tool_that_is_none_of_ours_is_another() {
    let meter = Meter::default();
    assert_eq!(meter.tool("bash"), "bash");
    assert_eq!(meter.tool("rm_everything"), OTHER);
}

#[test]
fn money_is_counted_only_where_a_price_is_known() {
    let meter = Meter::new(vec![("priced".into(), "openai"), ("unpriced".into(), "openai")]);
    let usage = Usage { cost_micros: Some(1_500_000), ..Usage::default() };
    meter.model("priced", "openai").used(&usage);
    meter.model("unpriced", "openai").used(&Usage { cost_micros: None, ..usage });
    let text = told(&meter);
    let cost = |model: &str| {
        let begin = format!("model_cost_usd_total{{provider=\"openai\",model=\"{model}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&begin)).map(str::to_owned)
    };
    assert_eq!(cost("priced").as_deref(), Some("1.5"));
    assert_eq!(cost("unpriced").as_deref(), Some("0.0"));
}

#[test]
fn queues_that_are_gone_are_forgotten() {
    let meter = Meter::default();
    let kept = Arc::new(Queued::default());
    meter.watch(&kept);
    for _ in 0..10_000 {
        meter.watch(&Arc::new(Queued::default()));
    }
    assert!(lock(&meter.queues).len() < 100, "those that are gone are not kept");
    assert_eq!(meter.queues().subscribers, 1);
    drop(kept);
    assert_eq!(meter.queues(), Queues::default());
}
