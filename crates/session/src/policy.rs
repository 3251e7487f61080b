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
    /// Reaches the network: what is sent leaves the machine, so a sandbox is no substitute for
    /// leave.
    Network,
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
    /// An edit whose every path is inside the folder in which its turn works, the one that is
    /// writable, and not protected.
    pub confined: bool,
    /// The host can run it in a sandbox.
    pub sandbox: bool,
    /// Never allowed, in any mode, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Text>,
    pub risk: Risk,
    /// One line that a person understands.
    pub reason: Text,
    /// What would run, word by word, as it is: `shown` says how to show it.
    pub command: Vec<Text>,
    /// The patch, for an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Text>,
    /// What it changes, as a unified diff in Git's form, for an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Text>,
    /// The file that holds the plan, for a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_file: Option<Text>,
    /// What "always" would cover, in words.
    pub covers: Text,
    pub keys: Vec<Key>,
    /// The line of the rules file that is about it, the strictest if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
}

/// What a line of the rules file says about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub says: Says,
    /// The line, as it was written.
    pub line: Text,
}

/// In the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    Allow,
    Ask,
    Deny,
}

/// By what a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Leave {
    /// It only reads.
    Reads,
    /// It was judged harmless.
    Safe,
    Mode {
        mode: Mode,
    },
    /// "Always" was said of such a call.
    Granted,
    Rule {
        line: Text,
    },
    /// Somebody was asked; the settled wait says who.
    Person,
}

impl Judgement {
    /// No mode asks about it.
    pub fn is_harmless(&self) -> bool {
        match self.effect {
            Effect::Read => true,
            Effect::Edit | Effect::Execute => self.safe,
            Effect::Network | Effect::Question | Effect::Plan => false,
        }
    }
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
pub const RULE_ADVICE: &str = "Not run: the rules of this server deny it:";
pub const NOBODY_ADVICE: &str = "Not run: it needs approval, and no client that can approve was \
                                 attached when it was proposed. Attach one and try again.";

pub const NOBODY_ANSWERS_ADVICE: &str = "Not asked: no client that can answer was attached. Decide \
                                         yourself what is most sensible, and say what you assumed.";

/// What the policy says of a call, and by what it may run, where it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    pub verdict: Verdict,
    pub leave: Option<Leave>,
}

/// Weighs one call. `answerable` says whether anyone could have answered when it was proposed.
pub fn weigh(call: &Judgement, mode: Mode, grants: &[Key], answerable: bool) -> Weighed {
    let (verdict, leave) = match leave(call, mode, grants) {
        Ok((verdict, leave)) => (verdict, Some(leave)),
        Err(Verdict::Ask) if !answerable && call.effect.asks() => {
            (Verdict::Deny(NOBODY_ANSWERS_ADVICE.into()), None)
        }
        Err(Verdict::Ask) if !answerable => (Verdict::Deny(NOBODY_ADVICE.into()), None),
        Err(verdict) => (verdict, None),
    };
    Weighed { verdict, leave }
}

pub fn verdict(call: &Judgement, mode: Mode, grants: &[Key], answerable: bool) -> Verdict {
    weigh(call, mode, grants, answerable).verdict
}

/// A call runs by the first of these that speaks for it; the error is what becomes of one for
/// which none does.
fn leave(call: &Judgement, mode: Mode, grants: &[Key]) -> Result<(Verdict, Leave), Verdict> {
    if let Some(refusal) = &call.refusal {
        return Err(Verdict::Deny(refusal.clone()));
    }
    let says = call.rule.as_ref().map(|rule| rule.says);
    if let (Some(Says::Deny), Some(rule)) = (says, &call.rule) {
        return Err(Verdict::Deny(format!("{RULE_ADVICE} {}", rule.line).into()));
    }
    if call.effect.asks() {
        return Err(Verdict::Ask);
    }
    let harmless = call.is_harmless();
    if harmless && says != Some(Says::Ask) {
        let leave = if call.effect == Effect::Read { Leave::Reads } else { Leave::Safe };
        return Ok((Verdict::Allow, leave));
    }
    if mode == Mode::Plan && !harmless {
        return Err(Verdict::Deny(PLAN_ADVICE.into()));
    }
    if says == Some(Says::Ask) {
        // Somebody wants to be asked, each time, whatever the mode would let pass.
        return Err(match mode {
            Mode::DontAsk => Verdict::Deny(DONT_ASK_ADVICE.into()),
            _ => Verdict::Ask,
        });
    }
    if granted(call, grants) {
        return Ok((Verdict::Allow, Leave::Granted));
    }
    if let (Some(Says::Allow), Some(rule)) = (says, &call.rule) {
        return Ok((Verdict::Allow, Leave::Rule { line: rule.line.clone() }));
    }
    let by_mode = Leave::Mode { mode };
    match (mode, call.effect) {
        (Mode::Bypass, _) => Ok((Verdict::Allow, by_mode)),
        (Mode::AutoEdit | Mode::FullAuto, Effect::Edit) if call.confined => {
            Ok((Verdict::Allow, by_mode))
        }
        (Mode::FullAuto, Effect::Execute) if call.sandbox => Ok((Verdict::AllowSandboxed, by_mode)),
        (Mode::DontAsk, _) => Err(Verdict::Deny(DONT_ASK_ADVICE.into())),
        (Mode::Suggest | Mode::AutoEdit | Mode::FullAuto | Mode::Plan, _) => Err(Verdict::Ask),
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
            diff: None,
            plan_file: None,
            covers: "".into(),
            keys: vec![Key { what: "touch".into(), risk: Risk::Medium }],
            rule: None,
        }
    }

    fn ruled(says: Says, call: Judgement) -> Judgement {
        Judgement { rule: Some(Rule { says, line: "the line".into() }), ..call }
    }

    /// What becomes of a call, and by what it runs: `inside` is in the sandbox.
    fn name(weighed: Weighed) -> &'static str {
        match (weighed.verdict, weighed.leave) {
            (Verdict::Allow, Some(Leave::Reads)) => "reads",
            (Verdict::Allow, Some(Leave::Safe)) => "safe",
            (Verdict::Allow, Some(Leave::Mode { .. })) => "mode",
            (Verdict::Allow, Some(Leave::Granted)) => "grant",
            (Verdict::Allow, Some(Leave::Rule { .. })) => "rule",
            (Verdict::AllowSandboxed, Some(Leave::Mode { mode: Mode::FullAuto })) => "inside",
            (Verdict::Ask, None) => "ask",
            (Verdict::Deny(_), None) => "deny",
            (verdict, leave) => panic!("{verdict:?} by {leave:?}"),
        }
    }

    const MODES: [Mode; 6] =
        [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];

    /// The table of modes; a column is suggest, auto-edit, full-auto, bypass, plan, dontAsk. The
    /// second row of a call is with its keys granted.
    #[test]
    fn the_table_of_modes() {
        let (read, command) = (call(Effect::Read), call(Effect::Execute));
        let safe = Judgement { safe: true, ..command.clone() };
        let inside = Judgement { sandbox: true, ..command.clone() };
        let edit = Judgement { confined: true, ..call(Effect::Edit) };
        let every = |word| [word; 6];
        let granted = ["grant", "grant", "grant", "grant", "deny", "grant"];
        let allowed = ["rule", "rule", "rule", "rule", "deny", "rule"];
        let asked = ["ask", "ask", "ask", "ask", "deny", "deny"];
        let asked_of_harmless = ["ask", "ask", "ask", "ask", "ask", "deny"];
        let rows = [
            ("read", read.clone(), every("reads"), every("reads")),
            ("safe", safe.clone(), every("safe"), every("safe")),
            ("confined edit", edit, ["ask", "mode", "mode", "mode", "deny", "deny"], granted),
            (
                "other edit",
                call(Effect::Edit),
                ["ask", "ask", "ask", "mode", "deny", "deny"],
                granted,
            ),
            (
                "command without a sandbox",
                command.clone(),
                ["ask", "ask", "ask", "mode", "deny", "deny"],
                granted,
            ),
            // "Always" was said of a call that was to run outside, so it does in full-auto too.
            (
                "command with a sandbox",
                inside.clone(),
                ["ask", "ask", "inside", "mode", "deny", "deny"],
                granted,
            ),
            // Whatever else is said of it.
            (
                "network",
                Judgement { safe: true, confined: true, sandbox: true, ..call(Effect::Network) },
                ["ask", "ask", "ask", "mode", "deny", "deny"],
                granted,
            ),
            ("allowed", ruled(Says::Allow, command.clone()), allowed, granted),
            ("allowed, with a sandbox", ruled(Says::Allow, inside.clone()), allowed, granted),
            ("allowed and safe", ruled(Says::Allow, safe.clone()), every("safe"), every("safe")),
            ("asked", ruled(Says::Ask, command.clone()), asked, asked),
            ("asked, with a sandbox", ruled(Says::Ask, inside.clone()), asked, asked),
            (
                "asked and safe",
                ruled(Says::Ask, safe.clone()),
                asked_of_harmless,
                asked_of_harmless,
            ),
            (
                "asked and read",
                ruled(Says::Ask, read.clone()),
                asked_of_harmless,
                asked_of_harmless,
            ),
            ("denied", ruled(Says::Deny, command), every("deny"), every("deny")),
            ("denied, with a sandbox", ruled(Says::Deny, inside), every("deny"), every("deny")),
            ("denied and safe", ruled(Says::Deny, safe), every("deny"), every("deny")),
            ("denied and read", ruled(Says::Deny, read), every("deny"), every("deny")),
        ];
        for (what, call, plain, with_grant) in rows {
            let got = |grants: &[Key]| MODES.map(|mode| name(weigh(&call, mode, grants, true)));
            assert_eq!((got(&[]), got(&call.keys)), (plain, with_grant), "{what}");
            // Without anyone there, what would be asked is denied, and nothing else changes.
            let alone = MODES.map(|mode| name(weigh(&call, mode, &[], false)));
            assert_eq!(
                alone,
                plain.map(|word| if word == "ask" { "deny" } else { word }),
                "{what}"
            );
        }
    }

    #[test]
    fn a_rule_is_named_where_it_decides() {
        let command = call(Effect::Execute);
        let allowed = weigh(&ruled(Says::Allow, command.clone()), Mode::Suggest, &[], true);
        assert_eq!(allowed.leave, Some(Leave::Rule { line: "the line".into() }));
        for (effect, answerable) in
            [(Effect::Execute, true), (Effect::Question, true), (Effect::Plan, false)]
        {
            let denied = weigh(&ruled(Says::Deny, call(effect)), Mode::Bypass, &[], answerable);
            let told = format!("{RULE_ADVICE} the line");
            assert_eq!(denied.verdict, Verdict::Deny(told.into()), "{effect:?}");
        }
        // What is never allowed is so whatever a rule says, and questions are asked anyway.
        let refused = Judgement { refusal: Some("no".into()), ..ruled(Says::Allow, command) };
        assert_eq!(
            weigh(&refused, Mode::Bypass, &refused.keys, true).verdict,
            Verdict::Deny("no".into())
        );
        for says in [Says::Allow, Says::Ask] {
            let question = ruled(says, call(Effect::Question));
            assert_eq!(MODES.map(|mode| name(weigh(&question, mode, &[], true))), ["ask"; 6]);
        }
        assert!(Says::Deny > Says::Ask && Says::Ask > Says::Allow, "in the order of strictness");
    }

    #[test]
    fn a_refusal_holds_in_every_mode_and_a_grant_never_reaches_a_higher_risk() {
        for effect in [Effect::Question, Effect::Plan] {
            for mode in MODES {
                assert_eq!(name(weigh(&call(effect), mode, &[], true)), "ask");
                assert_eq!(name(weigh(&call(effect), mode, &[], false)), "deny");
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
        assert_eq!(name(weigh(&call(Effect::Execute), Mode::Suggest, &[], false)), "deny");
    }
}
