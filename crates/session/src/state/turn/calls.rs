//! The model calls of a turn: how each begins and ends, and what becomes of one that failed.

use super::*;

impl Turn {
    pub(super) fn call_started(&mut self, call: CallId, started: Started, line: &mut Line) {
        let Started { purpose, tokens_max, overhead, line: on } = started;
        self.calls_made = self.calls_made.saturating_add(1);
        let (mut about, mut delay_ms) = (None, 0);
        match purpose {
            Purpose::Think | Purpose::Expand { .. } | Purpose::Summarise => {
                self.open_aside(on, line);
                if self.looped(on).is_some_and(|l| l.is_early()) && purpose.is_step() {
                    // The summary that was there gained nothing.
                    self.gave_up(on, line);
                }
                let compacts = self.is_compaction();
                if let Some((looped, line)) = self.at(on, line) {
                    if let Some(tokens) = overhead {
                        line.set_overhead(tokens);
                    }
                    if purpose == Purpose::Summarise && looped.shorten == Shorten::No && !compacts {
                        looped.shorten = Shorten::Early { tokens_max };
                    }
                    if purpose == Purpose::Summarise {
                        // An earlier one tells nothing of what came since.
                        looped.summary = None;
                    }
                    delay_ms = std::mem::take(&mut looped.retry_after_ms);
                    looped.phase = Phase::Calling;
                    if purpose.is_step() {
                        looped.said.clear();
                        looped.last = Some(call);
                    }
                }
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
            errand => {
                let errand = self.errands.entry(errand).or_default();
                delay_ms = std::mem::take(&mut errand.retry_after_ms);
                errand.call = Some(call);
                errand.given = None;
                errand.said.clear();
            }
        }
        let made = Call { purpose, line: on, proposed_tools: false, delay_ms, tokens_max, about };
        self.calls.insert(call, made);
    }

    /// A line beside the session's own begins as a copy of what it follows from.
    fn open_aside(&mut self, on: Option<LineId>, main: &Line) {
        let Some(on) = on.filter(|on| !self.asides.contains_key(on)) else { return };
        let line = match on {
            LineId::Branch { thought: Some(thought) } => {
                let parent = LineId::Branch { thought: self.method.parent(thought) };
                self.asides.get(&parent).map_or(main, |aside| &aside.line).clone()
            }
            LineId::Branch { thought: None } => main.clone(),
            LineId::Node { node, .. } => {
                let mut line = main.clone();
                for (seq, tokens, text) in self.method.notes(node) {
                    line.push(seq, tokens, Piece::Note { text });
                }
                line
            }
        };
        self.asides.insert(on, Aside { looped: Loop::default(), line });
    }

    /// Room was to be made while there was some; the work goes on without.
    pub(in crate::state) fn gave_up(&mut self, on: Option<LineId>, line: &mut Line) {
        let Some((looped, line)) = self.at(on, line) else { return };
        let Shorten::Early { tokens_max } = looped.shorten else { return };
        looped.shorten = Shorten::No;
        looped.retries = 0;
        line.try_made(tokens_max);
        // The summary is no step of the turn's own work.
        self.calls_made = self.calls_made.saturating_sub(1);
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
            Purpose::Think | Purpose::Expand { .. } | Purpose::Summarise => {
                self.step_ended(id, &call, (outcome, usage), at, line);
            }
            errand => self.errand_ended(errand, id, outcome),
        }
        self.all_tools_done(call.line);
    }

    fn step_ended(
        &mut self,
        id: CallId,
        call: &Call,
        ended: (&CallOutcome, Option<&Usage>),
        at: Seq,
        line: &mut Line,
    ) {
        let (outcome, usage) = ended;
        let (compacts, turn) = (self.is_compaction(), self.id);
        let aside = call.purpose == Purpose::Summarise && !compacts;
        let answered = call.purpose.is_step() && matches!(outcome, CallOutcome::Answered);
        self.answered |= answered;
        let Some((looped, own)) = self.at(call.line, line) else { return };
        looped.steps = looped.steps.saturating_add(u32::from(answered));
        if let Some(usage) = usage.filter(|usage| answered && usage.total_tokens() > 0) {
            own.measure(at, usage.total_tokens());
        }
        // Something was gained, so that there may be room to be made again.
        if answered && looped.shorten == Shorten::Done {
            looped.shorten = Shorten::No;
        }
        let gone = matches!(outcome, CallOutcome::Stopped | CallOutcome::Lost);
        if outcome.is_failure() || gone && call.line.is_some() {
            // Beside the session's own line nobody goes on from half an answer.
            own.forget(id);
            looped.summary.take_if(|summary| summary.call == id);
        } else {
            looped.retries = 0;
        }
        let phase = match outcome {
            CallOutcome::Failed { .. } if aside && looped.is_early() => {
                self.gave_up(call.line, line);
                Phase::Asking
            }
            // Not even a summary can be asked for: what came before goes without one. The
            // turn's own message does not: nobody would know what was asked.
            CallOutcome::Failed { fault }
                if aside && &*fault.code == TOO_LONG_CODE && context::cuts_before(own, turn) =>
            {
                let text: Text = LEFT_OUT_TEXT.into();
                let tokens = estimate_tokens(text.len());
                looped.retries = 0;
                looped.summary = Some(Summary { call: id, text, tokens });
                Phase::Summarised
            }
            CallOutcome::Answered if call.proposed_tools => Phase::Acting,
            CallOutcome::Answered if aside => Phase::Summarised,
            CallOutcome::Answered => Phase::Answered,
            CallOutcome::Failed { fault } => Phase::Failed(fault.clone()),
            CallOutcome::Retried { fault, after_ms } => {
                if &*fault.code == TOO_LONG_CODE {
                    // Another call is due now.
                    looped.retries = 0;
                    looped.shorten = Shorten::Due(fault.clone());
                } else {
                    looped.retries = looped.retries.saturating_add(1);
                    looped.retry_after_ms = *after_ms;
                }
                self.calls_made = self.calls_made.saturating_sub(1);
                Phase::Asking
            }
            CallOutcome::Stopped | CallOutcome::Lost => Phase::Asking,
        };
        if let Some((looped, _)) = self.at(call.line, line) {
            looped.phase = phase;
        }
    }

    fn errand_ended(&mut self, purpose: Purpose, id: CallId, outcome: &CallOutcome) {
        let Some(errand) = self.errands.get_mut(&purpose) else { return };
        if errand.call != Some(id) {
            return;
        }
        match outcome {
            CallOutcome::Answered => {
                let said: Vec<&str> = errand.said.values().map(|text| &**text).collect();
                errand.given = Some(Ok(said.join("\n").into()));
            }
            CallOutcome::Failed { fault } => errand.given = Some(Err(fault.clone())),
            CallOutcome::Retried { fault, .. } if &*fault.code == TOO_LONG_CODE => {
                errand.call = None;
                self.main.shorten = Shorten::Due(fault.clone());
                self.calls_made = self.calls_made.saturating_sub(1);
            }
            CallOutcome::Retried { after_ms, fault: _ } => {
                errand.call = None;
                errand.retries = errand.retries.saturating_add(1);
                errand.retry_after_ms = *after_ms;
                self.calls_made = self.calls_made.saturating_sub(1);
            }
            // Asked again, as if it had never been.
            CallOutcome::Stopped | CallOutcome::Lost => errand.call = None,
        }
    }

    /// Whether a provider that refuses the turn's message this way would refuse every later call
    /// that has it: nothing was ever answered to it.
    pub(crate) fn is_hopeless(&self, fault: &Fault) -> bool {
        let refused =
            [TOO_LONG_CODE, FLOOR_CODE, "invalid_request", "refused"].contains(&&*fault.code);
        refused && !self.answered && !self.is_compaction()
    }

    /// The turn has no work but to compact.
    pub fn is_compaction(&self) -> bool {
        matches!(self.work, Work::Compact { .. })
    }

    pub(in crate::state) fn compacted(&mut self, on: Option<LineId>) {
        let compacts = self.is_compaction();
        if !compacts {
            // The summary is no step of the turn's own work.
            self.calls_made = self.calls_made.saturating_sub(1);
        }
        let looped = match on {
            None => Some(&mut self.main),
            Some(on) => self.asides.get_mut(&on).map(|aside| &mut aside.looped),
        };
        let Some(looped) = looped else { return };
        looped.phase = if compacts { Phase::Finished } else { Phase::Asking };
        looped.shorten = Shorten::Done;
    }
}
