//! A loop: the model is asked, what it proposes is run, it is asked again, until it answers. The
//! session's own line has one, and so has every line beside it.

use super::*;

/// Where one loop stands. Set in `apply`, so that `next` costs what is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub phase: Phase,
    /// How often the call that is due was made in vain.
    pub retries: u32,
    /// The call that is due must wait this long.
    pub(super) retry_after_ms: u64,
    /// The conversation did not fit, and is to be made shorter before the next call.
    pub shorten: Shorten,
    /// The last text that a call for a summary completed.
    pub summary: Option<Summary>,
    /// What the last call said, by item, and which call that was.
    pub said: BTreeMap<ItemId, Text>,
    pub last: Option<CallId>,
    /// Steps that the model took.
    pub steps: u32,
    /// What its answer did not say.
    pub misread: Option<Misread>,
}

/// An answer that does not say what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Misread {
    pub text: Text,
    pub why: Text,
}

impl Default for Loop {
    fn default() -> Loop {
        Loop {
            phase: Phase::Asking,
            retries: 0,
            retry_after_ms: 0,
            shorten: Shorten::No,
            summary: None,
            said: BTreeMap::new(),
            last: None,
            steps: 0,
            misread: None,
        }
    }
}

impl Loop {
    /// A summary is asked for while there is still room.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self.shorten, Shorten::Early { .. })
    }

    /// All that the last call said.
    pub(crate) fn answer(&self) -> Text {
        let said: Vec<&str> = self.said.values().map(|text| &**text).collect();
        said.join("\n").into()
    }

    /// What was open in it is not: a crash or a person ended it.
    pub(in crate::state) fn rest(&mut self) {
        if matches!(self.phase, Phase::Calling | Phase::Acting | Phase::Summarised) {
            self.phase = Phase::Asking;
        }
        self.retries = 0;
        self.retry_after_ms = 0;
    }
}

/// A loop beside the session's own, with its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Aside {
    pub looped: Loop,
    pub line: Line,
}

/// One question of a strategy: what came of it so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errand {
    /// The attempt that is open, or gave what is there.
    pub call: Option<CallId>,
    pub retries: u32,
    pub(super) retry_after_ms: u64,
    pub misread: Option<Misread>,
    pub(super) said: BTreeMap<ItemId, Text>,
    pub given: Option<Result<Text, Fault>>,
}
