//! A tree of thoughts: what was proposed, what it is worth, and where the search stands.

use super::*;

#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub thoughts: BTreeMap<ThoughtId, Branch>,
    /// What follows from each that was expanded, in the order it was proposed.
    pub children: BTreeMap<Option<ThoughtId>, Vec<ThoughtId>>,
    /// Where the search goes on, best first; nothing is the beginning.
    pub beam: Vec<Option<ThoughtId>>,
    pub depth: u32,
    /// Choices made so far.
    pub round: u32,
    /// What was voted for in this round, by sample.
    pub votes: BTreeMap<u32, Option<ThoughtId>>,
    /// The search is over.
    pub taken: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    pub text: Text,
    /// Nothing is left to do after it.
    pub last: bool,
    pub parent: Option<ThoughtId>,
    /// From 1.
    pub depth: u32,
    /// By sample; nothing where no opinion could be had.
    pub values: BTreeMap<u32, Option<u32>>,
    /// In thousandths, once it was weighed.
    pub score: Option<u32>,
    /// It was in a beam.
    pub tried: bool,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree {
            thoughts: BTreeMap::new(),
            children: BTreeMap::new(),
            beam: vec![None],
            depth: 0,
            round: 0,
            votes: BTreeMap::new(),
            taken: false,
        }
    }
}

impl Tree {
    /// The thoughts down to this one.
    pub fn path(&self, to: Option<ThoughtId>) -> Vec<ThoughtId> {
        let mut path = Vec::new();
        let mut at = to;
        while let Some(id) = at {
            path.push(id);
            at = self.thoughts.get(&id).and_then(|thought| thought.parent);
        }
        path.reverse();
        path
    }

    /// What is weighed in this round: by the place of what it follows from, never by arrival.
    pub fn candidates(&self) -> Vec<ThoughtId> {
        let of = |from: &Option<ThoughtId>| self.children.get(from).cloned().unwrap_or_default();
        self.beam.iter().flat_map(of).collect()
    }

    pub(super) fn expanded(&mut self, seq: Seq, from: Option<ThoughtId>, thoughts: &[Thought]) {
        let parent = from.and_then(|from| self.thoughts.get(&from));
        let depth = parent.map_or(0, |parent| parent.depth).saturating_add(1);
        let mut children = Vec::with_capacity(thoughts.len());
        for (index, thought) in (0..).zip(thoughts) {
            let id = ThoughtId { expanded: seq, index };
            let Thought { text, last } = thought.clone();
            let (values, score, tried) = (BTreeMap::new(), None, false);
            let branch = Branch { text, last, parent: from, depth, values, score, tried };
            self.thoughts.insert(id, branch);
            children.push(id);
        }
        self.children.insert(from, children);
    }

    pub(super) fn scored(&mut self, by: Purpose, score: Option<u32>, voted: Option<ThoughtId>) {
        match by {
            Purpose::Value { thought, sample } => {
                if let Some(thought) = self.thoughts.get_mut(&thought) {
                    thought.values.insert(sample, score);
                }
            }
            Purpose::Vote { sample, .. } => {
                self.votes.insert(sample, voted);
            }
            _ => {}
        }
    }

    pub(super) fn chosen(&mut self, depth: u32, beam: &[ThoughtId], weighed: &[Weighed]) {
        for Weighed { thought, score } in weighed {
            if let Some(thought) = self.thoughts.get_mut(thought) {
                thought.score = Some(*score);
            }
        }
        for thought in beam {
            if let Some(thought) = self.thoughts.get_mut(thought) {
                thought.tried = true;
            }
        }
        self.beam = beam.iter().copied().map(Some).collect();
        self.depth = depth;
        self.round = self.round.saturating_add(1);
        self.votes.clear();
    }
}
