use polyloop_session::policy::{Mode, Rule, Verdict, verdict};
use proptest::prelude::*;

use super::*;

const MODES: [Mode; 6] =
    [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];

/// Few names, so that grants often cover.
fn key() -> impl Strategy<Value = Key> {
    let risk = prop::sample::select(vec![Risk::Low, Risk::Medium, Risk::High]);
    (prop::sample::select(vec!["a", "b", "c"]), risk)
        .prop_map(|(what, risk)| Key { what: what.into(), risk })
}

fn part() -> impl Strategy<Value = Judgement> {
    let effect = prop::sample::select(vec![
        Effect::Read,
        Effect::Edit,
        Effect::Edit,
        Effect::Execute,
        Effect::Execute,
        Effect::Network,
        Effect::Question,
    ]);
    let says = prop::sample::select(vec![Says::Allow, Says::Allow, Says::Ask, Says::Deny]);
    let rule = prop::option::weighted(0.3, says);
    let facts = (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.05));
    let risk = prop::sample::select(vec![Risk::Low, Risk::Medium, Risk::High]);
    (effect, facts, rule, risk, prop::collection::vec(key(), 0..3)).prop_map(
        |(effect, (safe, confined, sandbox, refused), says, risk, keys)| Judgement {
            effect,
            safe,
            confined,
            sandbox,
            refusal: refused.then(|| "no".into()),
            risk,
            reason: "why".into(),
            command: vec!["x".into()],
            patch: None,
            diff: None,
            plan_file: None,
            covers: "it".into(),
            keys,
            rule: says.map(|says| Rule { says, line: "line".into() }),
        },
    )
}

fn strictness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::AllowSandboxed => 1,
        Verdict::Ask => 2,
        Verdict::Deny(_) => 3,
    }
}

fn joined(parts: &[Judgement]) -> Judgement {
    let call = |_: &Judgement| Call { tool: "bash", args: "{}".into() };
    join(&parts.iter().map(call).collect::<Vec<_>>(), parts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// A batch can never do what one of its parts may not.
    #[test]
    fn a_batch_is_never_weighed_more_freely_than_its_strictest_part(
        parts in prop::collection::vec(part(), 1..6),
        grants in prop::collection::vec(key(), 0..5),
        answerable in any::<bool>(),
    ) {
        let batch = joined(&parts);
        prop_assert!(parts.iter().all(|part| part.risk <= batch.risk));
        for mode in MODES {
            let whole = verdict(&batch, mode, &grants, answerable);
            for part in &parts {
                let alone = verdict(part, mode, &grants, answerable);
                prop_assert!(
                    strictness(&whole) >= strictness(&alone),
                    "{mode:?}: {whole:?}, but alone {alone:?}: {part:?}"
                );
            }
        }
        // What "always" would cover is no more than the parts.
        let harmful = || parts.iter().filter(|part| !part.is_harmless());
        for key in &batch.keys {
            prop_assert!(harmful().any(|part| part.keys.contains(key)));
        }
        prop_assert!(batch.keys.is_empty() || harmful().all(|part| !part.keys.is_empty()));
    }

    /// Nor is anybody asked about what each part may do by itself for the same reason.
    #[test]
    fn a_batch_of_equals_is_weighed_like_one_of_them(
        part in part(),
        count in 1..5_usize,
        grants in prop::collection::vec(key(), 0..5),
    ) {
        prop_assume!(!part.effect.asks());
        let batch = joined(&vec![part.clone(); count]);
        for mode in MODES {
            let whole = verdict(&batch, mode, &grants, true);
            let alone = verdict(&part, mode, &grants, true);
            prop_assert_eq!(strictness(&whole), strictness(&alone), "{:?}", mode);
        }
    }
}

fn plain(effect: Effect, risk: Risk, reason: &str) -> Judgement {
    Judgement {
        effect,
        safe: effect == Effect::Read,
        confined: effect == Effect::Edit,
        sandbox: effect == Effect::Execute,
        refusal: None,
        risk,
        reason: reason.into(),
        command: vec!["touch".into(), "a b".into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: format!("{reason} always").into(),
        keys: vec![Key { what: reason.into(), risk }],
        rule: None,
    }
}

#[test]
fn what_people_are_told_names_every_part() {
    let mut edit = plain(Effect::Edit, Risk::Medium, "edits f");
    edit.patch = Some("*** Begin Patch\n".into());
    edit.diff = Some("--- a/f\n".into());
    let parts = [
        plain(Effect::Read, Risk::Low, "reads f"),
        edit.clone(),
        plain(Effect::Execute, Risk::High, "pushes"),
        edit,
    ];
    let batch = joined(&parts);
    assert_eq!(&*batch.reason, "4 calls, the riskiest: pushes");
    let shown: Vec<&str> = batch.command.iter().map(|word| &**word).collect();
    let patch = "[2] bash:\n*** Begin Patch\n";
    assert_eq!(shown[..3], ["batch", "[1] bash: touch 'a b'", patch]);
    assert_eq!(&*batch.covers, "edits f always; pushes always");
    let keys: Vec<&str> = batch.keys.iter().map(|key| &*key.what).collect();
    assert_eq!(keys, ["edits f", "pushes"]);
    assert_eq!((batch.effect, batch.risk, batch.patch), (Effect::Execute, Risk::High, None));
    assert_eq!(batch.diff.as_deref(), Some("--- a/f\n--- a/f\n"));
    let one = joined(&parts[1..2]);
    assert_eq!((&*one.reason, one.effect, one.confined), ("edits f", Effect::Edit, true));
    let reads = joined(&[parts[0].clone(), parts[0].clone()]);
    assert!(reads.effect == Effect::Read && reads.safe && reads.keys.is_empty());
}
