//! Makes one judgement of several: in every mode, and whatever was granted, it is weighed no more
//! freely than the strictest of them.

use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Key, Risk, Rule, Says};

use super::{Call, NAME, reach};
use crate::rules;
use crate::shell::quote;
use crate::tool::bash::refused;

pub(super) fn join(calls: &[Call], parts: &[Judgement]) -> Judgement {
    let numbered = || (1..).zip(calls).zip(parts).map(|((n, call), part)| (n, call.tool, part));
    for (number, tool, part) in numbered() {
        if let Some(why) = &part.refusal {
            return refused(part.effect, NAME, &format!("{NAME}: [{number}] {tool}: {why}"));
        }
        if part.effect.asks() {
            let why = format!("{NAME}: [{number}] {tool}: cannot be part of a batch");
            return refused(part.effect, NAME, &why);
        }
    }
    // What no mode asks about has no say in what the others need.
    let harmful: Vec<&Judgement> = parts.iter().filter(|part| !part.is_harmless()).collect();
    let heard: Vec<&Judgement> = match harmful.is_empty() {
        true => parts.iter().collect(),
        false => harmful.clone(),
    };
    let effects = heard.iter().map(|part| part.effect);
    let is_confined = |part: &&Judgement| part.effect == Effect::Edit && part.confined;
    let can_be_sandboxed = |part: &&Judgement| match part.effect {
        Effect::Execute => part.sandbox,
        Effect::Edit => part.confined,
        Effect::Read | Effect::Network | Effect::Question | Effect::Plan => false,
    };
    let riskiest = parts.iter().rev().max_by_key(|part| part.risk);
    Judgement {
        effect: effects.max_by_key(|effect| reach(*effect)).unwrap_or(Effect::Read),
        safe: harmful.is_empty(),
        confined: harmful.iter().all(is_confined),
        sandbox: !harmful.is_empty() && harmful.iter().all(can_be_sandboxed),
        refusal: None,
        risk: riskiest.map_or(Risk::Low, |part| part.risk),
        reason: reason(parts, riskiest),
        command: std::iter::once(Text::from(NAME))
            .chain(numbered().map(|(number, tool, part)| shown(number, tool, part)))
            .collect(),
        // A person's patch in place of it would take the place of its other parts, too.
        patch: None,
        diff: diff(parts),
        plan_file: None,
        covers: covers(&harmful),
        keys: keys(&harmful),
        rule: rule(parts, &harmful),
    }
}

fn reason(parts: &[Judgement], riskiest: Option<&Judgement>) -> Text {
    let why = riskiest.map(|part| &*part.reason).unwrap_or_default();
    match parts.len() {
        1 => why.into(),
        count => format!("{count} calls, the riskiest: {why}").into(),
    }
}

fn shown(number: usize, tool: &str, part: &Judgement) -> Text {
    let words = match part.command.as_slice() {
        [name, words @ ..] if &**name == tool => words,
        words => words,
    };
    match &part.patch {
        Some(patch) => format!("[{number}] {tool}:\n{patch}").into(),
        None => {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            format!("[{number}] {tool}: {}", quote(&words)).into()
        }
    }
}

/// What all of them change, one after the other.
fn diff(parts: &[Judgement]) -> Option<Text> {
    let diffs: String = parts.iter().filter_map(|part| part.diff.as_deref()).collect();
    (!diffs.is_empty()).then(|| diffs.into())
}

/// Leave for all of them is leave for each. If there is one that none can be given for, there is
/// none for the batch.
fn keys(harmful: &[&Judgement]) -> Vec<Key> {
    if harmful.iter().any(|part| part.keys.is_empty()) {
        return Vec::new();
    }
    let mut keys: Vec<Key> = Vec::new();
    for key in harmful.iter().flat_map(|part| &part.keys) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

fn covers(harmful: &[&Judgement]) -> Text {
    if harmful.iter().any(|part| part.keys.is_empty()) {
        return "".into();
    }
    let mut covers: Vec<&str> = Vec::new();
    for part in harmful {
        if !covers.contains(&&*part.covers) {
            covers.push(&part.covers);
        }
    }
    covers.join("; ").into()
}

/// A harmless part needs no rule to be allowed; one that asks about it or denies it counts.
fn rule(parts: &[Judgement], harmful: &[&Judgement]) -> Option<Rule> {
    let allowing = rules::of_all(harmful.iter().map(|part| part.rule.clone()));
    let harmless = parts.iter().filter(|part| part.is_harmless());
    harmless.fold(allowing, |all, part| {
        let strict = part.rule.clone().filter(|rule| rule.says != Says::Allow);
        rules::stricter(all, strict)
    })
}

#[cfg(test)]
mod tests;
