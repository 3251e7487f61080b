//! The items of a turn: how each is proposed, started and completed, and what goes into the line.

use super::*;

impl Turn {
    pub(super) fn propose(
        &mut self,
        id: ItemId,
        tool: ToolPhase,
        proposed: Proposed<'_>,
        line: &mut Line,
    ) {
        let Some(item) = self.items.get_mut(&id) else { return };
        let ItemKind::ToolCall { name, call_ref, native: _ } = &item.kind else { return };
        let piece = Piece::ToolCall {
            call: Some(item.call),
            item: id,
            name: name.clone(),
            call_ref: call_ref.clone(),
            args: proposed.args.clone(),
            opaque: proposed.opaque.clone(),
        };
        item.tool = Some(tool);
        if let Some(call) = self.calls.get_mut(&item.call) {
            call.proposed_tools = true;
        }
        let on = item.line;
        if let Some((_, line)) = self.at(on, line) {
            line.push(proposed.seq, proposed.tokens, piece);
        }
    }

    pub(super) fn tool_started(&mut self, item: ItemId, sandboxed: bool, leave: Option<&Leave>) {
        let Some(Item { tool: Some(phase), .. }) = self.items.get_mut(&item) else { return };
        let (args, judgement, reads, leave) = match phase {
            ToolPhase::Proposed { args, judgement, .. } => {
                let reads = judgement.effect == Effect::Read;
                // Entries of earlier versions do not say it; the strictest is taken for them.
                let leave = leave.cloned().unwrap_or(Leave::Safe);
                (args.clone(), Some(judgement.clone()), reads, leave)
            }
            ToolPhase::Approved { args } => (args.clone(), None, false, Leave::Person),
            ToolPhase::Waiting { .. }
            | ToolPhase::Denied { .. }
            | ToolPhase::Answered { .. }
            | ToolPhase::Running { .. } => return,
        };
        let sandboxed = judgement.filter(|_| sandboxed);
        *phase = ToolPhase::Running { args, sandboxed, reads, leave };
    }

    /// The call is proposed again, as one for which there is no sandbox.
    pub(super) fn sandbox_refused(&mut self, id: ItemId, stopped: Stopped, answerable: bool) {
        let Some(item) = self.items.get_mut(&id) else { return };
        let Some(ToolPhase::Running { args, sandboxed: Some(judgement), .. }) = &item.tool else {
            return;
        };
        let judgement = Box::new(Judgement { sandbox: false, ..(**judgement).clone() });
        item.tool = Some(ToolPhase::Proposed { args: args.clone(), judgement, answerable });
        item.stopped = Some(Box::new(stopped));
    }

    pub(super) fn item_completed(
        &mut self,
        id: ItemId,
        end: End,
        seq: Seq,
        whole: Completed<'_>,
        line: &mut Line,
    ) {
        let Some(item) = self.items.remove(&id) else { return };
        let purpose = self.calls.get(&item.call).map(|c| c.purpose);
        match (&item.kind, &item.tool) {
            (ItemKind::ToolCall { .. }, Some(_)) => {
                let is_error = end != End::Whole;
                let told = self.explanations.remove(&id).unwrap_or_default();
                // A batch in which one call failed has written them all the same.
                let open: Option<Text> = match (whole.todos, item.todos()) {
                    (Some(open), _) => Some(open.clone()),
                    (None, Some(args)) if !is_error => {
                        Some(todos::open_in(args).unwrap_or_default().into())
                    }
                    (None, _) => None,
                };
                if let Some(open) = &open {
                    // The list is the session's, whoever writes it.
                    line.set_todos(open.clone());
                }
                if let Some((_, line)) = self.at(item.line, line) {
                    if let Some(open) = open {
                        line.set_todos(open);
                    }
                    let output = whole.seen.clone();
                    line.push(seq, whole.tokens, Piece::ToolResult { item: id, output, is_error });
                    for (text, tokens) in told {
                        line.push(seq, tokens, Piece::Explanation { text });
                    }
                }
                self.all_tools_done(item.line);
            }
            // Cut inside its arguments: never proposed, so no part of the prompt.
            (ItemKind::ToolCall { .. }, None) => {}
            (ItemKind::Text, _) => self.text_completed(&item, purpose, end, seq, whole, line),
            (ItemKind::Reasoning, _) => {
                if purpose.is_some_and(Purpose::is_step) && end == End::Whole {
                    let (text, opaque) = (whole.text.clone(), whole.opaque.cloned());
                    let call = item.call;
                    let piece = Piece::Reasoning { call, item: id, text, opaque };
                    if let Some((_, line)) = self.at(item.line, line) {
                        line.push(seq, whole.tokens, piece);
                    }
                }
            }
        }
    }

    fn text_completed(
        &mut self,
        item: &Item,
        purpose: Option<Purpose>,
        end: End,
        seq: Seq,
        whole: Completed<'_>,
        line: &mut Line,
    ) {
        if end == End::Discarded || whole.text.is_empty() {
            return;
        }
        match purpose {
            Some(Purpose::Think | Purpose::Expand { .. }) => {
                let (call, text) = (Some(item.call), whole.text.clone());
                let opaque = whole.opaque.cloned();
                let piece = Piece::Agent { call, item: whole.id, text: text.clone(), opaque };
                if let Some((looped, line)) = self.at(item.line, line) {
                    looped.said.insert(whole.id, text);
                    line.push(seq, whole.tokens, piece);
                }
            }
            Some(Purpose::Explain { .. }) => {
                let about = self.calls.get(&item.call).and_then(|call| call.about.as_ref());
                match about.map(|about| about.item).filter(|id| self.items.contains_key(id)) {
                    Some(open) => {
                        let told = self.explanations.entry(open).or_default();
                        told.push((whole.text.clone(), whole.tokens));
                    }
                    // Settled and done while it was explained.
                    None => {
                        let piece = Piece::Explanation { text: whole.text.clone() };
                        if let Some((_, line)) = self.at(item.line, line) {
                            line.push(seq, whole.tokens, piece);
                        }
                    }
                }
            }
            Some(Purpose::Summarise) => {
                let (text, tokens) = (whole.text.clone(), whole.tokens);
                if let Some((looped, _)) = self.at(item.line, line) {
                    looped.summary = Some(Summary { call: item.call, text, tokens });
                }
            }
            Some(errand) => {
                if let Some(errand) = self.errands.get_mut(&errand) {
                    errand.said.insert(whole.id, whole.text.clone());
                }
            }
            None => {}
        }
    }
}

/// What a proposal carries into the line.
pub(super) struct Proposed<'a> {
    pub(super) seq: Seq,
    pub(super) args: &'a Text,
    pub(super) tokens: u64,
    pub(super) opaque: &'a Option<Opaque>,
}

/// What a completion carries, as the turn needs it.
#[derive(Clone, Copy)]
pub(super) struct Completed<'a> {
    pub(super) id: ItemId,
    pub(super) text: &'a Text,
    pub(super) seen: &'a Text,
    pub(super) opaque: Option<&'a Opaque>,
    pub(super) todos: Option<&'a Text>,
    pub(super) tokens: u64,
}
