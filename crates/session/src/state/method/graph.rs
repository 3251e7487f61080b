//! A graph of sub-tasks, and the graphs inside those that were too much for one.

use super::*;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    pub nodes: BTreeMap<NodeId, Node>,
    /// The nodes of the whole, and of each that has a graph of its own, as they were planned.
    pub graphs: BTreeMap<Option<NodeId>, Vec<NodeId>>,
    /// All is done, and the model was told.
    pub gathered: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in the whole turn.
    pub name: Text,
    pub task: Text,
    pub needs: Vec<NodeId>,
    pub attempts: u32,
    pub refine: u32,
    pub parent: Option<NodeId>,
    /// How many graphs it is inside of, from 1.
    pub depth: u32,
    /// What it was told beside the conversation; nothing before it began.
    pub notes: Vec<(Seq, u64, Text)>,
    /// Whether it is too much for one, once that was judged.
    pub complex: Option<bool>,
    /// It was told what came of the graph inside it.
    pub gathered: bool,
    /// What its attempts came to, as they were scored; nothing where no score could be had.
    pub answers: BTreeMap<u32, Option<u32>>,
    /// The answer that is worked over.
    pub best: Option<Text>,
    pub refined: u32,
    pub outcome: Option<NodeOutcome>,
}

impl Node {
    pub fn is_done(&self) -> bool {
        matches!(self.outcome, Some(NodeOutcome::Done { .. }))
    }

    pub fn result(&self) -> Option<&Text> {
        match &self.outcome {
            Some(NodeOutcome::Done { result, .. }) => Some(result),
            Some(NodeOutcome::Failed { .. } | NodeOutcome::Skipped { .. }) | None => None,
        }
    }
}

impl Graph {
    /// Those whose result nobody in the same graph needs.
    pub fn sinks(&self, of: Option<NodeId>) -> Vec<NodeId> {
        let all = self.graphs.get(&of).cloned().unwrap_or_default();
        let needed = |id: &NodeId| {
            let needs = all.iter().filter_map(|other| self.nodes.get(other));
            needs.into_iter().any(|other| other.needs.contains(id))
        };
        all.iter().filter(|id| !needed(id)).copied().collect()
    }

    pub(super) fn planned(&mut self, seq: Seq, parent: Option<NodeId>, nodes: &[PlannedNode]) {
        let above = parent.and_then(|parent| self.nodes.get(&parent));
        let depth = above.map_or(0, |above| above.depth).saturating_add(1);
        let prefix = above.map(|above| format!("{}.", above.name)).unwrap_or_default();
        let id = |index: u32| NodeId { planned: seq, index };
        let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        for (index, node) in (0..).zip(nodes) {
            let PlannedNode { name, task, needs, attempts, refine } = node.clone();
            let needs = needs.into_iter().filter(|need| *need < count && *need != index);
            let node = Node {
                name: format!("{prefix}{name}").into(),
                task,
                needs: needs.map(id).collect(),
                attempts,
                refine,
                parent,
                depth,
                notes: Vec::new(),
                complex: None,
                gathered: false,
                answers: BTreeMap::new(),
                best: None,
                refined: 0,
                outcome: None,
            };
            self.nodes.insert(id(index), node);
        }
        self.graphs.insert(parent, (0..count).map(id).collect());
    }

    pub(super) fn scored(&mut self, by: Purpose, score: Option<u32>) {
        if let Purpose::Score { node, attempt } = by
            && let Some(node) = self.nodes.get_mut(&node)
        {
            node.answers.insert(attempt, score);
        }
    }
}
