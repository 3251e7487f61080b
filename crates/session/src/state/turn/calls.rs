//! The model calls of a turn: how each begins and ends, and what becomes of one that failed.

use super::*;

impl Turn {
    pub(super) fn call_started(
        &mut self,
        call: CallId,
        purpose: Purpose,
        tokens_max: u64,
        line: &mut Line,
    ) {
        match (purpose, &self.shorten) {
            (Purpose::Summarise, Shorten::No) if !self.is_compaction() => {
                self.shorten = Shorten::Early { tokens_max };
            }
            // The summary that was there gained nothing.
            (Purpose::Think, Shorten::Early { .. }) => self.gave_up(line),
            _ => {}
        }
        self.calls_made = self.calls_made.saturating_add(1);
        let mut about = None;
        match purpose {
            Purpose::Think => self.phase = Phase::Calling,
            Purpose::Summarise => {
                self.phase = Phase::Calling;
                // An earlier one tells nothing of what came since.
                self.answer = None;
            }
            Purpose::Explain { wait } => {
                if let Some(open) = self.waits.get_mut(&wait) {
                    open.explain = Explain::Calling(call);
                    let tool = self.items.get(&open.item).and_then(|item| item.tool.as_ref());
                    if let Some(ToolPhase::Waiting { judgement, .. }) = tool {
                        let mut command = judgement.command.clone();
                        if let Ask::Plan { plan, .. } = &open.ask {
                            command.push(plan.clone());
                        }
                        about = Some(About { item: open.item, command });
                    }
                }
            }
        }
        let delay_ms = std::mem::take(&mut self.retry_after_ms);
        let call_made = Call { purpose, proposed_tools: false, delay_ms, tokens_max, about };
        self.calls.insert(call, call_made);
    }

    /// Room was to be made while there was some; the work goes on without.
    pub(in crate::state) fn gave_up(&mut self, line: &mut Line) {
        let Shorten::Early { tokens_max } = self.shorten else { return };
        self.shorten = Shorten::No;
        self.retries = 0;
        // The summary is no step of the turn's own work.
        self.calls_made = self.calls_made.saturating_sub(1);
        line.try_made(tokens_max);
    }

    pub(super) fn call_ended(
        &mut self,
        id: CallId,
        outcome: &CallOutcome,
        usage: Option<&Usage>,
        at: Seq,
        line: &mut Line,
    ) {
        let Some(call) = self.calls.remove(&id) else { return };
        self.usage.add(usage.copied().unwrap_or_default());
        match call.purpose {
            Purpose::Explain { wait } => {
                if let Some(open) = self.waits.get_mut(&wait) {
                    open.explain = Explain::No;
                }
            }
            Purpose::Think | Purpose::Summarise => {
                let aside = call.purpose == Purpose::Summarise && !self.is_compaction();
                let thought = call.purpose == Purpose::Think;
                let answered = thought && matches!(outcome, CallOutcome::Answered);
                self.answered |= answered;
                if let Some(usage) = usage.filter(|usage| answered && usage.total_tokens() > 0) {
                    line.measure(at, usage.total_tokens());
                }
                // Something was gained, so that there may be room to be made again.
                if answered && self.shorten == Shorten::Done {
                    self.shorten = Shorten::No;
                }
                if outcome.is_failure() {
                    line.forget(id);
                    self.answer.take_if(|summary| summary.call == id);
                } else {
                    self.retries = 0;
                }
                self.phase = match outcome {
                    CallOutcome::Failed { .. } if aside && self.is_early() => {
                        self.gave_up(line);
                        Phase::Asking
                    }
                    // Not even a summary can be asked for: what came before goes without one. The
                    // turn's own message does not: nobody would know what was asked.
                    CallOutcome::Failed { fault }
                        if aside
                            && &*fault.code == TOO_LONG_CODE
                            && context::cuts_before(line, self.id) =>
                    {
                        let text: Text = LEFT_OUT_TEXT.into();
                        let tokens = estimate_tokens(text.len());
                        self.retries = 0;
                        self.answer = Some(Summary { call: id, text, tokens });
                        Phase::Summarised
                    }
                    CallOutcome::Answered if call.proposed_tools => Phase::Acting,
                    CallOutcome::Answered if aside => Phase::Summarised,
                    CallOutcome::Answered => Phase::Answered,
                    CallOutcome::Failed { fault } => Phase::Failed(fault.clone()),
                    CallOutcome::Retried { fault, after_ms } => {
                        self.retried(fault, *after_ms);
                        Phase::Asking
                    }
                    CallOutcome::Stopped | CallOutcome::Lost => Phase::Asking,
                };
            }
        }
        self.all_tools_done();
    }

    fn retried(&mut self, fault: &Fault, after_ms: u64) {
        self.calls_made = self.calls_made.saturating_sub(1);
        if &*fault.code == TOO_LONG_CODE {
            // Another call is due now.
            self.retries = 0;
            self.shorten = Shorten::Due(fault.clone());
            return;
        }
        self.retries = self.retries.saturating_add(1);
        self.retry_after_ms = after_ms;
    }

    /// Whether a provider that refuses the turn's message this way would refuse every later call
    /// that has it: nothing was ever answered to it.
    pub(crate) fn is_hopeless(&self, fault: &Fault) -> bool {
        let refused =
            [TOO_LONG_CODE, FLOOR_CODE, "invalid_request", "refused"].contains(&&*fault.code);
        refused && !self.answered && !self.is_compaction()
    }

    /// A summary is asked for while there is still room.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self.shorten, Shorten::Early { .. })
    }

    /// The turn has no work but to compact.
    pub fn is_compaction(&self) -> bool {
        matches!(self.work, Work::Compact { .. })
    }

    pub(in crate::state) fn compacted(&mut self) {
        self.phase = match self.is_compaction() {
            true => Phase::Finished,
            false => {
                // The summary is no step of the turn's own work.
                self.calls_made = self.calls_made.saturating_sub(1);
                Phase::Asking
            }
        };
        self.shorten = Shorten::Done;
    }
}
