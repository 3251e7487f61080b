use polyloop_session::{CallId, Event, Seq, State};
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

fn running(meter: &Meter) -> i64 {
    meter.calls_running.get()
}

#[test]
fn what_a_gate_holds_up_does_not_run_until_it_is_let_through() {
    let meter = Arc::new(Meter::default());
    let mut tally = Tally::open(meter.clone());
    let (free, waits) = (CallId(Seq(1)), CallId(Seq(2)));
    // Who is free to go is told of by nobody.
    let _ = tally.asks(free, meter.model("m", "openai"));
    let passage = tally.asks(waits, meter.model("m", "openai"));
    assert_eq!(running(&meter), 2);
    passage.held();
    assert_eq!(running(&meter), 1, "the one that waits does not run");
    std::thread::sleep(Duration::from_millis(60));
    passage.let_through();
    assert_eq!(running(&meter), 2);
    assert!(tally.hears(waits));
    let text = told(&meter);
    let within = text.lines().find(|line| {
        line.starts_with("model_first_token_seconds_bucket") && line.contains("le=\"0.05\"")
    });
    assert!(within.is_some_and(|line| line.ends_with(" 1")), "the wait is not in it: {text}");
    drop(tally);
    assert_eq!(running(&meter), 0, "what a session has in a level goes with it");
    passage.let_through();
    assert_eq!(running(&meter), 0, "and nobody counts for it any more");
}

#[test]
fn what_is_refused_here_is_not_the_providers_doing() {
    let meter = Arc::new(Meter::default());
    let mut tally = Tally::open(meter.clone());
    let call = CallId(Seq(1));
    let passage = tally.asks(call, meter.model("m", "openai"));
    passage.held();
    passage.refused();
    let fault = polyloop_session::item::Fault::new("overloaded", "The server is overloaded");
    let outcome = polyloop_session::event::CallOutcome::Failed { fault };
    tally.see(&State::default(), &Event::CallEnded { call, outcome, usage: None });
    let text = told(&meter);
    assert!(text.contains("status=\"refused_here\"} 1"), "{text}");
    assert!(!text.contains("overloaded"), "{text}");
    let timed = text.lines().find(|line| line.starts_with("model_call_seconds_count"));
    assert!(timed.is_some_and(|line| line.ends_with(" 0")), "it never ran: {text}");
    assert_eq!(running(&meter), 0);
}

#[test]
fn refusals_that_others_count_never_go_back() {
    let meter = Meter::default();
    meter.refuses(Limit::Messages);
    for count in [3, 5, 4] {
        meter.refused_so_far(Limit::Requests, count);
    }
    let text = told(&meter);
    let of = |limit: &str| {
        let begin = format!("refused_total{{limit=\"{limit}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&begin)).map(str::to_owned)
    };
    assert_eq!(of("messages").as_deref(), Some("1"));
    assert_eq!(of("requests").as_deref(), Some("5"));
    for limit in ["turns", "queued_messages", "model_calls", "processes"] {
        assert_eq!(of(limit).as_deref(), Some("0"), "{limit}");
    }
}
