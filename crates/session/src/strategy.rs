//! How a turn is worked: each strategy is a function of the state that says what to record next.
//!
//! Strategies share one engine: loops, which ask and act on a line until there is an answer, and
//! errands, which are one question each. A strategy says which it wants and reads what they gave.

pub mod bounds;
pub mod compact;
pub mod dup;
pub mod got;
pub mod react;
pub mod read;
pub mod tot;

mod engine;

use crate::decide::Limits;
use crate::event::{Event, LineId, Purpose, Work};
use crate::state::{Line, Loop, Method, State, Turn};

/// What the turn's strategy wants recorded.
pub(crate) fn next(state: &State, turn: &Turn, limits: &Limits) -> Vec<Event> {
    let main = Desk { state, turn, line: state.line(), looped: &turn.main, on: None, limits };
    match (&turn.work, &turn.method) {
        (Work::Compact { .. }, _) => compact::next(&main),
        (Work::Message { .. } | Work::Resume { .. }, method) => match method {
            Method::Dup(dup) if !dup.understood => dup::next(&main, dup),
            Method::Tot(tree) if !tree.taken => tot::next(&main, tree),
            Method::Got(graph) if !graph.gathered => got::next(&main, graph),
            Method::React | Method::Dup(_) | Method::Tot(_) | Method::Got(_) => react::next(&main),
        },
    }
}

/// One loop of a turn with its line, and what is in force for it.
#[derive(Clone, Copy)]
pub(crate) struct Desk<'a> {
    pub state: &'a State,
    pub turn: &'a Turn,
    pub line: &'a Line,
    pub looped: &'a Loop,
    pub on: Option<LineId>,
    pub limits: &'a Limits,
}

impl<'a> Desk<'a> {
    pub fn tokens_max(&self) -> u64 {
        self.state.tokens_max(self.limits)
    }

    /// Another loop of the same turn.
    pub fn aside(&self, on: LineId) -> Option<Desk<'a>> {
        let aside = self.turn.asides.get(&on)?;
        Some(Desk { line: &aside.line, looped: &aside.looped, on: Some(on), ..*self })
    }
}

/// The beginning of a model call, with what is in force for it.
pub(crate) fn call(
    state: &State,
    limits: &Limits,
    purpose: Purpose,
    line: Option<LineId>,
) -> Event {
    let model = state.settings().map(|s| s.model.clone()).unwrap_or_default();
    let tokens_max = state.tokens_max(limits);
    // Other calls are told fewer tools, or none.
    let counted = limits.overhead.total();
    let overhead_tokens = (purpose.is_step() && counted > 0).then_some(counted);
    Event::CallStarted { purpose, model, tokens_max, overhead_tokens, line }
}

/// What an errand, or a step of a search, asks.
pub(crate) struct Question {
    pub text: String,
    /// Whether tools that read may be used to answer.
    pub may_read: bool,
}

/// `None` where it is about nothing that is there.
pub(crate) fn question(turn: &Turn, purpose: Purpose, limits: &Limits) -> Option<Question> {
    let bounds = engine::bounds_of(turn, limits);
    let mut may_read = false;
    let text = match (&turn.method, purpose) {
        (Method::Dup(_), Purpose::Question) => dup::QUESTION_TEXT.to_owned(),
        (Method::Dup(understood), Purpose::Information) => {
            let goal = understood.goal.clone().unwrap_or_default();
            format!("The core question is: {goal}\n\n{}", dup::INFORMATION_TEXT)
        }
        (Method::Tot(tree), Purpose::Expand { thought }) => {
            let looped = turn.looped(Some(LineId::Branch { thought }));
            may_read = looped.is_none_or(|looped| looped.steps < bounds.tot_steps);
            tot::expand_text(tree, thought, bounds.tot_proposals)
        }
        (Method::Tot(tree), Purpose::Value { thought, .. }) => tot::value_text(tree, thought),
        (Method::Tot(tree), Purpose::Vote { .. }) => tot::vote_text(tree),
        (Method::Got(graph), Purpose::Plan { node }) => {
            got::plan_text(graph, node, got::plan_bounds(&bounds, graph, node))
        }
        (Method::Got(graph), Purpose::Judge { node }) => got::judge_text(graph.nodes.get(&node)?),
        (Method::Got(graph), Purpose::Score { node, attempt }) => {
            let line = LineId::Node { node, attempt };
            let answer = turn.looped(Some(line))?.answer();
            got::score_text(graph.nodes.get(&node)?, &answer)
        }
        (Method::Got(graph), Purpose::Refine { node, .. }) => {
            let node = graph.nodes.get(&node)?;
            got::refine_text(node, node.best.as_deref()?)
        }
        _ => return None,
    };
    Some(Question { text, may_read })
}

/// What a strategy tells the model beside the conversation, as a reader of prompts sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    Understood,
    Path,
    /// With the sub-task.
    Task(&'a str),
    Results,
}

/// `None` for what people say.
pub fn note(text: &str) -> Option<Note<'_>> {
    let begins = |beginning| text.starts_with(beginning);
    match () {
        () if begins(dup::TOLD_BEGINNING) => Some(Note::Understood),
        () if begins(tot::TAKEN_BEGINNING) => Some(Note::Path),
        () if begins(got::RESULTS_BEGINNING) => Some(Note::Results),
        () if begins(got::TASK_BEGINNING) => {
            let (_, task) = text.split_once(got::TASK_MARK)?;
            Some(Note::Task(task.split("\n\nResult of ").next().unwrap_or(task)))
        }
        () => None,
    }
}
