//! What asks a person, and how it ends.

use polyloop_session::shown;
use polyloop_session::wait::{Answer, Ask, Given, Then, Who};
use polyloop_session::{ItemId, WaitId};

use super::UnifiedEncoder;
use super::items::Item;
use super::parts::{Parts, body, entry_id};
use crate::conn::Out;
use crate::request;
use crate::tools::unified_name;
use crate::unified::wire::{
    ApprovalSettled, AskUserQuestion, AskedQuestion, ControlRequest, Decision, ExitPlanMode, Json,
    RequestContext, RequestId, RiskLevel, ToolId,
};

pub(super) struct Wait {
    item: ItemId,
    ask: Ask,
    /// It went out in a message that somebody read.
    pub read: bool,
}

impl UnifiedEncoder {
    pub(super) fn wait_opened(
        &mut self,
        id: WaitId,
        item: ItemId,
        ask: Ask,
        out: &mut Parts<'_, '_>,
    ) {
        self.waits.insert(id, Wait { item, ask, read: false });
        self.present(id, out.out);
    }

    pub(super) fn wait_settled(
        &mut self,
        wait: WaitId,
        answer: &Answer,
        by: &Who,
        out: &mut Parts<'_, '_>,
    ) {
        self.waits.remove(&wait);
        let (decision, message) = decided(answer);
        let instead = match answer {
            Answer::Approved { instead, .. } => instead.as_ref(),
            Answer::Denied { .. } | Answer::Answered { .. } => None,
        };
        out.tell(&ApprovalSettled {
            request_id: RequestId(wait),
            decision,
            by: Some(by.describe()),
            message,
            input: instead.map(|instead| Json::new(&instead.args)),
        });
    }

    pub(super) fn wait_withdrawn(
        &mut self,
        wait: WaitId,
        reason: &str,
        by: Option<&Who>,
        out: &mut Parts<'_, '_>,
    ) {
        self.waits.remove(&wait);
        out.tell(&ApprovalSettled {
            request_id: RequestId(wait),
            decision: Decision::Withdrawn,
            by: by.map(Who::describe),
            message: Some(reason.to_string()),
            input: None,
        });
    }

    /// Asks, with the ids that the request has always had.
    pub(super) fn present(&mut self, id: WaitId, out: &mut Out<'_>) {
        let Some(wait) = self.waits.get(&id) else { return };
        let (event_id, request_id) = (entry_id(id.0, 0), RequestId(id));
        let text = match &wait.ask {
            Ask::Approval | Ask::Outside { .. } => {
                let Some(Item::Tool { name, proposal: Some(proposal) }) =
                    self.items.get(&wait.item)
                else {
                    return; // A damaged log: nobody can say what is asked.
                };
                let judgement = &proposal.judgement;
                let stopped = match &wait.ask {
                    Ask::Outside { reason } => Some(crate::asks::outside(reason)),
                    Ask::Approval | Ask::Question { .. } | Ask::Plan { .. } => None,
                };
                let context = RequestContext {
                    description: stopped.unwrap_or_else(|| shown::sentence(&judgement.reason)),
                    risk_level: RiskLevel::of(judgement.risk),
                    covers: shown::sentence(&judgement.covers),
                    command: request::command(judgement),
                };
                let (tool_name, tool_use_id) = (unified_name(name), ToolId(wait.item));
                let input = Json::new(&request::arguments(&proposal.args));
                let own = ControlRequest { request_id, tool_name, tool_use_id, input, context };
                body(event_id, &own, out)
            }
            Ask::Question { questions } => {
                let questions = &request::questions(questions);
                let questions = questions.iter().map(AskedQuestion::of).collect();
                let own = AskUserQuestion { tool_id: request_id, request_id, questions };
                body(event_id, &own, out)
            }
            Ask::Plan { plan, path } => {
                let plan_file_path = path.as_deref().map(shown::command);
                let plan = shown::prose(plan);
                let own = ExitPlanMode { tool_id: request_id, request_id, plan_file_path, plan };
                body(event_id, &own, out)
            }
        };
        out.request(id, text);
        if let Some(wait) = self.waits.get_mut(&id) {
            wait.read = !out.is_muted();
        }
    }
}

/// The decision, and what was said with it.
fn decided(answer: &Answer) -> (Decision, Option<String>) {
    match answer {
        Answer::Approved { always, message, .. } => {
            let decision = if *always { Decision::AllowAlways } else { Decision::Allow };
            (decision, message.as_deref().map(str::to_string))
        }
        Answer::Denied { message, then } => {
            let decision = match then {
                Then::Continue => Decision::Deny,
                Then::EndTurn => Decision::DenyStop,
            };
            (decision, Some(message.to_string()))
        }
        Answer::Answered { answers, said } => {
            let chosen = || answers.iter().map(words).collect::<Vec<_>>().join("; ");
            (Decision::Answered, Some(said.as_deref().map_or_else(chosen, str::to_string)))
        }
    }
}

fn words(given: &Given) -> String {
    let chosen = given.selected.iter().map(|label| &**label);
    chosen.chain(given.text.as_deref()).collect::<Vec<_>>().join(", ")
}
