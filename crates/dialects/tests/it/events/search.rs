//! What strategies record.

use polyloop_session::event::{
    LineId, NodeOutcome, PlannedNode, Purpose, Thought, Understanding, Weighed,
};
use polyloop_session::id::{NodeId, ThoughtId};
use polyloop_session::{CallId, Event, WaitId};

use super::Choices;

pub const KINDS: u64 = 15;

impl Choices<'_> {
    fn thought(&mut self) -> ThoughtId {
        ThoughtId { expanded: self.seq(), index: (self.number() % 3) as u32 }
    }

    fn maybe_thought(&mut self) -> Option<ThoughtId> {
        self.maybe().then(|| self.thought())
    }

    fn node(&mut self) -> NodeId {
        NodeId { planned: self.seq(), index: (self.number() % 3) as u32 }
    }

    fn maybe_node(&mut self) -> Option<NodeId> {
        self.maybe().then(|| self.node())
    }

    pub fn line(&mut self) -> Option<LineId> {
        let attempt = (self.number() % 3) as u32;
        match self.number() % 3 {
            0 => Some(LineId::Node { node: self.node(), attempt }),
            1 => Some(LineId::Branch { thought: self.maybe_thought() }),
            _ => None,
        }
    }

    pub fn purpose(&mut self) -> Purpose {
        let (sample, attempt) = ((self.number() % 3) as u32, (self.number() % 3) as u32);
        match self.number() % 15 {
            0 => Purpose::Summarise,
            1 => Purpose::Explain { wait: WaitId(self.seq()) },
            2 => Purpose::Question,
            3 => Purpose::Information,
            4 => Purpose::Expand { thought: self.maybe_thought() },
            5 => Purpose::Value { thought: self.thought(), sample },
            6 => Purpose::Vote { round: attempt, sample },
            7 => Purpose::Plan { node: self.maybe_node() },
            8 => Purpose::Judge { node: self.node() },
            9 => Purpose::Score { node: self.node(), attempt },
            10 => Purpose::Refine { node: self.node(), round: attempt },
            _ => Purpose::Think,
        }
    }

    fn thoughts(&mut self) -> Vec<Thought> {
        let texts = self.texts().into_iter();
        texts.map(|text| Thought { text, last: self.maybe() }).collect()
    }

    fn weighed(&mut self) -> Vec<Weighed> {
        let score = |own: &mut Self| own.one(&[0, 500, 1_000, u32::MAX]);
        let one = |own: &mut Self| Weighed { thought: own.thought(), score: score(own) };
        (0..self.number() % 4).map(|_| one(self)).collect()
    }

    fn beam(&mut self) -> Vec<ThoughtId> {
        (0..self.number() % 3).map(|_| self.thought()).collect()
    }

    fn planned(&mut self) -> Vec<PlannedNode> {
        let names = self.texts().into_iter();
        let node = |name| PlannedNode {
            name,
            task: self.text(),
            needs: self.one(&[vec![], vec![0], vec![1, 2], vec![u32::MAX]]),
            attempts: self.one(&[0, 1, 3]),
            refine: self.one(&[0, 2]),
        };
        names.map(node).collect()
    }

    fn node_outcome(&mut self) -> NodeOutcome {
        match self.number() % 3 {
            0 => NodeOutcome::Done { result: self.text(), tokens: self.number() },
            1 => NodeOutcome::Failed { fault: self.fault() },
            _ => NodeOutcome::Skipped { missing: self.node() },
        }
    }

    pub fn search(&mut self, kind: u64) -> Event {
        let (call, tokens) = (CallId(self.seq()), self.number());
        match kind % KINDS {
            0 => Event::Misread { call, why: self.text() },
            1 => {
                let part = match self.maybe() {
                    true => Understanding::Question { goal: self.text() },
                    false => Understanding::Information {
                        constraints: self.texts(),
                        context: self.text(),
                    },
                };
                Event::Understood { call, part, tokens }
            }
            2 | 3 => {
                let (from, thoughts) = (self.maybe_thought(), self.thoughts());
                Event::Expanded { call, from, thoughts }
            }
            4 => {
                let score = self.maybe().then(|| self.number() as u32);
                Event::Scored { call, score, thought: self.maybe_thought() }
            }
            5 => {
                let (depth, beam) = (self.one(&[0, 1, u32::MAX]), self.beam());
                Event::Chosen { depth, beam, weighed: self.weighed() }
            }
            6 => {
                let (to_depth, beam) = (self.one(&[0, 1, u32::MAX]), self.beam());
                let (reason, weighed) = (self.text(), self.weighed());
                Event::Backtracked { to_depth, beam, reason, weighed }
            }
            7 => Event::PathTaken { thought: self.maybe_thought(), note: self.text(), tokens },
            8 => Event::Planned { call, parent: self.maybe_node(), nodes: self.planned() },
            9 => Event::Judged { call, node: self.node(), complex: self.maybe() },
            10 => Event::NodeStarted { node: self.node(), note: self.text(), tokens },
            11 => Event::Kept { node: self.node(), text: self.text() },
            12 => Event::Refined { call, node: self.node(), text: self.maybe_text() },
            13 => Event::NodeEnded { node: self.node(), outcome: self.node_outcome() },
            _ => match self.maybe() {
                true => Event::Gathered { node: self.maybe_node(), note: self.text(), tokens },
                false => Event::Concluded { text: self.text(), tokens },
            },
        }
    }
}
