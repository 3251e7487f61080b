//! Whether a proposed tool call runs, is asked about, or is denied.
//!
//! Facts come from outside as a `Judgement`; this room only weighs them against the session's
//! mode and grants.

use serde::{Deserialize, Serialize};

use crate::id::Text;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Suggest,
    AutoEdit,
    FullAuto,
    Bypass,
    Plan,
    DontAsk,
}

/// What a tool call does to the world, as its tool declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Read,
    Edit,
    Execute,
    /// Asks the user something.
    Question,
    /// Proposes a plan to the user.
    Plan,
}

impl Effect {
    /// It does nothing but ask a person, in every mode.
    pub fn asks(self) -> bool {
        matches!(self, Effect::Question | Effect::Plan)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    Low,
    Medium,
    High,
}

/// Names what a grant covers. A call is covered when each of its keys was granted at a risk no
/// lower than its own; the judge makes keys no wider than what a person was shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    pub what: Text,
    pub risk: Risk,
}

/// What the agent found out about a call before it is allowed to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    pub effect: Effect,
    /// Provably harmless: no mode asks about it.
    pub safe: bool,
    /// An edit whose every path is inside the writable roots and not protected.
    pub confined: bool,
    /// The host can run it in a sandbox.
    pub sandbox: bool,
    /// Never allowed, in any mode, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Text>,
    pub risk: Risk,
    /// One line that a person understands.
    pub reason: Text,
    /// What would run, word by word.
    pub command: Vec<Text>,
    /// The patch, for an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Text>,
    /// The file that holds the plan, for a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_file: Option<Text>,
    /// What "always" would cover, in words.
    pub covers: Text,
    pub keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    AllowSandboxed,
    Ask,
    Deny(Text),
}

pub const PLAN_ADVICE: &str = "Not run: the session is in plan mode. Finish the plan and propose \
                               it before anything is changed.";
pub const DONT_ASK_ADVICE: &str =
    "Not run: the session does not ask for approval, and nothing granted covers this call.";
pub const NOBODY_ADVICE: &str = "Not run: it needs approval, and no client that can approve was \
                                 attached when it was proposed. Attach one and try again.";

pub const NOBODY_ANSWERS_ADVICE: &str = "Not asked: no client that can answer was attached. Decide \
                                         yourself what is most sensible, and say what you assumed.";

/// Weighs one call. `answerable` says whether anyone could have answered when it was proposed.
pub fn verdict(call: &Judgement, mode: Mode, grants: &[Key], answerable: bool) -> Verdict {
    if let Some(refusal) = &call.refusal {
        return Verdict::Deny(refusal.clone());
    }
    if call.effect.asks() {
        return match answerable {
            true => Verdict::Ask,
            false => Verdict::Deny(NOBODY_ANSWERS_ADVICE.into()),
        };
    }
    if call.safe || call.effect == Effect::Read {
        return Verdict::Allow;
    }
    let verdict = match (mode, call.effect) {
        (Mode::Bypass, _) => Verdict::Allow,
        (Mode::Plan, _) => Verdict::Deny(PLAN_ADVICE.into()),
        (Mode::AutoEdit | Mode::FullAuto, Effect::Edit) if call.confined => Verdict::Allow,
        (Mode::FullAuto, Effect::Execute) if call.sandbox => Verdict::AllowSandboxed,
        _ if granted(call, grants) => Verdict::Allow,
        (Mode::DontAsk, _) => Verdict::Deny(DONT_ASK_ADVICE.into()),
        (Mode::Suggest | Mode::AutoEdit | Mode::FullAuto, _) => Verdict::Ask,
    };
    match verdict {
        Verdict::Ask if !answerable => Verdict::Deny(NOBODY_ADVICE.into()),
        other => other,
    }
}

fn granted(call: &Judgement, grants: &[Key]) -> bool {
    let covered = |key: &Key| grants.iter().any(|g| g.what == key.what && g.risk >= key.risk);
    !call.keys.is_empty() && call.keys.iter().all(covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(effect: Effect) -> Judgement {
        Judgement {
            effect,
            safe: false,
            confined: false,
            sandbox: false,
            refusal: None,
            risk: Risk::Medium,
            reason: "".into(),
            command: vec!["touch".into(), "a".into()],
            patch: None,
            plan_file: None,
            covers: "".into(),
            keys: vec![Key { what: "touch".into(), risk: Risk::Medium }],
        }
    }

    fn name(verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::Allow => "run",
            Verdict::AllowSandboxed => "sandbox",
            Verdict::Ask => "ask",
            Verdict::Deny(_) => "deny",
        }
    }

    /// The table of modes, row by row: safe, confined edit, other edit, command without and with
    /// a sandbox, granted command.
    #[test]
    fn the_table_of_modes() {
        let rows = [
            (Mode::Suggest, ["run", "ask", "ask", "ask", "ask", "run"]),
            (Mode::AutoEdit, ["run", "run", "ask", "ask", "ask", "run"]),
            (Mode::FullAuto, ["run", "run", "ask", "ask", "sandbox", "run"]),
            (Mode::Bypass, ["run", "run", "run", "run", "run", "run"]),
            (Mode::Plan, ["run", "deny", "deny", "deny", "deny", "deny"]),
            (Mode::DontAsk, ["run", "deny", "deny", "deny", "deny", "run"]),
        ];
        for (mode, want) in rows {
            let command = call(Effect::Execute);
            let got = [
                verdict(&Judgement { safe: true, ..command.clone() }, mode, &[], true),
                verdict(&Judgement { confined: true, ..call(Effect::Edit) }, mode, &[], true),
                verdict(&call(Effect::Edit), mode, &[], true),
                verdict(&command, mode, &[], true),
                verdict(&Judgement { sandbox: true, ..command.clone() }, mode, &[], true),
                verdict(&command, mode, &command.keys, true),
            ];
            assert_eq!(got.map(name), want, "{mode:?}");
        }
    }

    #[test]
    fn a_refusal_holds_in_every_mode_and_a_grant_never_reaches_a_higher_risk() {
        for effect in [Effect::Question, Effect::Plan] {
            for mode in [Mode::Suggest, Mode::Bypass, Mode::Plan, Mode::DontAsk, Mode::FullAuto] {
                assert_eq!(name(verdict(&call(effect), mode, &[], true)), "ask");
                assert_eq!(name(verdict(&call(effect), mode, &[], false)), "deny");
            }
        }
        let refused = Judgement { refusal: Some("no".into()), ..call(Effect::Edit) };
        assert_eq!(
            verdict(&refused, Mode::Bypass, &refused.keys, true),
            Verdict::Deny("no".into())
        );
        let mut riskier = call(Effect::Execute);
        riskier.keys[0].risk = Risk::High;
        let grants = call(Effect::Execute).keys;
        assert_eq!(verdict(&riskier, Mode::Suggest, &grants, true), Verdict::Ask);
        assert_eq!(name(verdict(&call(Effect::Execute), Mode::Suggest, &[], false)), "deny");
    }
}
