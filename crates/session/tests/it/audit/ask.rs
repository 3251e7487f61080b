//! What is asked of people, what they answer, and what becomes of it.

use polyloop_session::event::Event;
use polyloop_session::item::End;
use polyloop_session::next::{NOT_RUN_TEXT, UNREADABLE_TEXT};
use polyloop_session::policy::{Effect, NOBODY_ANSWERS_ADVICE, RULE_ADVICE, Says};
use polyloop_session::wait::{Answer, Ask, Given, PLAN_APPROVED_TEXT};
use polyloop_session::{ItemId, Text, WaitId};
use serde_json::Value;

use super::run::Fate;
use super::{Audit, Checked, Item, Proposed};

pub struct Wait {
    item: ItemId,
    ask: Ask,
    pub end: Option<WaitEnd>,
}

pub enum WaitEnd {
    Settled(Answer),
    Withdrawn(Text),
}

impl Wait {
    /// Whether it gave a tool leave to run.
    pub fn gave_leave(&self) -> bool {
        let approved = matches!(self.end, Some(WaitEnd::Settled(Answer::Approved { .. })));
        approved && matches!(self.ask, Ask::Approval | Ask::Outside { .. })
    }

    pub fn is_outside(&self) -> bool {
        matches!(self.ask, Ask::Outside { .. })
    }
}

/// What the arguments ask, read without the types of the crate.
fn asks(proposed: &Proposed) -> Option<Vec<String>> {
    let args: Value = serde_json::from_str(&proposed.args).ok()?;
    match proposed.judgement.effect {
        Effect::Question => {
            let questions = args.get("questions")?.as_array()?;
            let text = |q: &Value| q.get("question").and_then(Value::as_str).map(String::from);
            let texts: Option<Vec<String>> = questions.iter().map(text).collect();
            texts.filter(|texts| !texts.is_empty())
        }
        Effect::Plan => Some(vec![args.get("plan")?.as_str()?.to_string()]),
        Effect::Read | Effect::Edit | Effect::Execute | Effect::Network => None,
    }
}

impl Audit {
    pub fn wait_event(&mut self, id: WaitId, event: &Event) -> Checked {
        match event {
            Event::WaitOpened { item, ask } => self.wait_opened(id, *item, ask),
            Event::WaitSettled { wait, answer, .. } => self.wait_settled(*wait, answer),
            Event::WaitWithdrawn { wait, reason, by } => {
                let stopping = self.turn.as_ref().is_some_and(|turn| turn.stopping);
                ensure!(stopping != by.is_some(), "[3] withdrawn by {by:?}, stopping: {stopping}");
                self.wait_ended(*wait, WaitEnd::Withdrawn(reason.clone()))
            }
            Event::ExplainAsked { wait, .. } => {
                let row = self.waits.get(wait).ok_or("[3] explains an unknown wait")?;
                ensure!(row.end.is_none(), "[3] explains a wait that has ended");
                let question = matches!(row.ask, Ask::Question { .. });
                ensure!(!question, "[11] a question is explained");
                Ok(())
            }
            other => Err(format!("no event of a wait: {other:?}")),
        }
    }

    fn wait_opened(&mut self, id: WaitId, item: ItemId, ask: &Ask) -> Checked {
        self.running_turn()?;
        let row = self.open_item(item)?;
        let (free, idle) = (row.wait.is_none(), row.runs.now.is_none());
        ensure!(free && idle, "[3] asked about twice, or too late");
        row.wait = Some(id);
        let row = self.items.get(&item).ok_or("an unknown item")?;
        let asked = row.proposed.as_ref().ok_or("[3] asked about before it was proposed")?;
        let (_, answerable) = row.weighed()?;
        ensure!(answerable && asked.judgement.refusal.is_none(), "[11] asks nobody");
        let fate = self.fate(row)?;
        ensure!(fate == Fate::Asked, "[4] asks, but it is {fate:?}");
        let effect = asked.judgement.effect;
        match ask {
            Ask::Approval => {
                ensure!(!effect.asks(), "[11] asks for leave to run a {effect:?}");
                ensure!(row.runs.stopped.is_none(), "[16] asks as if it had never run");
            }
            Ask::Outside { reason } => {
                let stopped = row.runs.stopped.as_ref().ok_or("[16] no sandbox stopped it")?;
                ensure!(stopped.reason == *reason, "[16] stopped by {:?}", stopped.reason);
            }
            Ask::Question { questions } => {
                let texts = questions.iter().map(|q| q.question.to_string()).collect();
                ensure!(asks(asked) == Some(texts), "[11] asks another question");
            }
            Ask::Plan { plan, path } => {
                ensure!(asks(asked) == Some(vec![plan.to_string()]), "[11] another plan");
                ensure!(*path == asked.judgement.plan_file, "[11] a plan of another file");
            }
        }
        self.waits.insert(id, Wait { item, ask: ask.clone(), end: None });
        Ok(())
    }

    fn wait_settled(&mut self, id: WaitId, answer: &Answer) -> Checked {
        let row = self.waits.get(&id).ok_or("[3] an unknown wait ends")?;
        match (&row.ask, answer) {
            (_, Answer::Denied { message, .. }) => {
                ensure!(!message.trim().is_empty(), "[3] a denial without a word");
            }
            (Ask::Approval | Ask::Outside { .. }, Answer::Approved { grants, .. }) => {
                self.grants.extend(grants.iter().cloned());
            }
            (Ask::Plan { .. }, Answer::Approved { grants, instead, .. }) => {
                let plain = grants.is_empty() && instead.is_none();
                ensure!(plain, "[11] a plan grants something, or runs something");
                self.session.plan_approved();
            }
            (Ask::Question { questions }, Answer::Answered { answers, .. }) => {
                let (asked, given) = (questions.len(), answers.len());
                ensure!(asked == given, "[11] {given} answers to {asked} questions");
            }
            (ask, answer) => return Err(format!("[11] {answer:?} to {ask:?}")),
        }
        self.wait_ended(id, WaitEnd::Settled(answer.clone()))
    }

    fn wait_ended(&mut self, id: WaitId, end: WaitEnd) -> Checked {
        let row = self.waits.get_mut(&id).ok_or("[3] an unknown wait ends")?;
        ensure!(row.end.is_none(), "[3] a wait ends twice");
        row.end = Some(end);
        // A crash closes the item first, a stop the wait.
        let known = self.items.contains_key(&row.item);
        ensure!(known, "[3] waits for an unknown item");
        Ok(())
    }

    /// A proposed call that never ran ends as the person, the policy or the turn's end said.
    pub(super) fn unrun(&self, row: &Item, proposed: &Proposed, end: End, text: &str) -> Checked {
        let Some(wait) = row.wait.and_then(|wait| self.waits.get(&wait)) else {
            if end == End::Denied {
                let fate = self.fate(row)?;
                ensure!(fate == Fate::Denied, "[4] denied without a word; it is {fate:?}");
            }
            return unasked(proposed, end, text);
        };
        let leave = wait.gave_leave();
        match &wait.end {
            Some(WaitEnd::Settled(_)) if leave => interrupted(end, text),
            Some(WaitEnd::Settled(answer)) => said(&wait.ask, answer, end, text),
            Some(WaitEnd::Withdrawn(reason)) if end == End::Denied => {
                ensure!(text == &**reason, "[11] withdrawn for {reason}, told {text}");
                Ok(())
            }
            Some(WaitEnd::Withdrawn(_)) | None => interrupted(end, text),
        }
    }
}

fn interrupted(end: End, text: &str) -> Checked {
    ensure!((end, text) == (End::Interrupted, NOT_RUN_TEXT), "[4] never ran, yet {end:?}: {text}");
    Ok(())
}

/// Nobody was asked. What asks is asked in every mode, so there was nobody, or nothing to ask.
fn unasked(proposed: &Proposed, end: End, text: &str) -> Checked {
    if end == End::Interrupted {
        return interrupted(end, text);
    }
    if let Some(refusal) = &proposed.judgement.refusal {
        ensure!((end, text) == (End::Denied, &**refusal), "[4] refused, yet {end:?}: {text}");
        return Ok(());
    }
    if let Some(rule) = proposed.judgement.rule.as_ref().filter(|rule| rule.says == Says::Deny) {
        let told = format!("{RULE_ADVICE} {}", rule.line);
        ensure!((end, text) == (End::Denied, &*told), "[17] denied by {rule:?}, told {text}");
        return Ok(());
    }
    if !proposed.judgement.effect.asks() {
        ensure!(end == End::Denied, "[4] never ran, yet {end:?}");
        return Ok(());
    }
    let want = match (proposed.answerable, asks(proposed)) {
        (false, _) => (End::Denied, NOBODY_ANSWERS_ADVICE),
        (true, None) => (End::Failed, UNREADABLE_TEXT),
        (true, Some(asked)) => return Err(format!("[11] nobody was asked {asked:?}: {text}")),
    };
    ensure!((end, text) == want, "[11] {end:?} {text}, but should be {want:?}");
    Ok(())
}

/// What the person said is what the model is told.
fn said(ask: &Ask, answer: &Answer, end: End, text: &str) -> Checked {
    let holds = match (ask, answer) {
        (_, Answer::Denied { message, .. }) => (end, text) == (End::Denied, &**message),
        (Ask::Plan { .. }, Answer::Approved { message, .. }) => {
            let added = message.as_deref().unwrap_or_default();
            end == End::Whole && text.starts_with(PLAN_APPROVED_TEXT) && text.ends_with(added)
        }
        (Ask::Question { .. }, Answer::Answered { answers, said }) => {
            let word_for_word = said.as_ref().is_some_and(|said| text.contains(said.trim()));
            let words =
                |given: &Given| given.selected.clone().into_iter().chain(given.text.clone());
            let told = answers.iter().flat_map(words).all(|word| text.contains(&*word));
            end == End::Whole && (word_for_word || told)
        }
        _ => false,
    };
    ensure!(holds, "[11] {answer:?} to {ask:?} ends as {end:?}: {text}");
    Ok(())
}
