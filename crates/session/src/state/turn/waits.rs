//! The waits of a turn: what becomes of a call while a person is asked, and after.

use super::*;

impl Turn {
    pub(super) fn wait_opened(&mut self, item: ItemId, ask: &Ask, entry: &LogEntry) {
        let wait = WaitId(entry.seq);
        let Some(Item { tool: Some(phase), .. }) = self.items.get_mut(&item) else { return };
        let ToolPhase::Proposed { args, judgement, .. } = phase else { return };
        let (args, judgement) = (args.clone(), judgement.clone());
        *phase = ToolPhase::Waiting { args, judgement, wait };
        let (ask, opened_at) = (ask.clone(), entry.at);
        let open = OpenWait { item, ask, opened_at, explain: Explain::No };
        self.waits.insert(wait, open);
    }

    pub(super) fn wait_settled(&mut self, id: WaitId, answer: &Answer, grants: &mut Vec<Key>) {
        let Some(open) = self.waits.remove(&id) else { return };
        let item = self.items.get_mut(&open.item);
        let Some(Item { tool: Some(phase), .. }) = item else { return };
        let ToolPhase::Waiting { args, .. } = phase else { return };
        if !open.ask.for_leave() {
            let (ask, answer) = (Box::new(open.ask), Box::new(answer.clone()));
            *phase = ToolPhase::Answered { ask, answer };
            return;
        }
        *phase = match answer {
            Answer::Approved { grants: fresh, instead, .. } => {
                for key in fresh {
                    if !grants.contains(key) && grants.len() < GRANTS_MAX {
                        grants.push(key.clone());
                    }
                }
                let args = instead.as_ref().map_or_else(|| args.clone(), |i| i.args.clone());
                ToolPhase::Approved { args }
            }
            Answer::Denied { message, then: _ } => ToolPhase::Denied { message: message.clone() },
            // No answer to a request for approval: it does not run.
            Answer::Answered { .. } => ToolPhase::Denied { message: "Not allowed.".into() },
        };
    }

    /// Nobody will answer any more, so the call does not run.
    pub(super) fn wait_withdrawn(&mut self, id: WaitId, reason: &Text) {
        let Some(open) = self.waits.remove(&id) else { return };
        if let Some(Item { tool: Some(phase), .. }) = self.items.get_mut(&open.item) {
            *phase = ToolPhase::Denied { message: reason.clone() };
        }
    }
}
