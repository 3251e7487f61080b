//! What stands in a session's prompts beside the conversation, and what its calls may cost.

use polyloop_session::budget::UNPRICED_CODE;
use polyloop_session::context::{Overhead, WindowSize};
use polyloop_session::event::{Event, Level};
use polyloop_session::{Limits, Text, TurnId};

use super::Actor;
use crate::subscriber::View;
use crate::tool::{Place, Words};

/// What was counted last, so that it is not counted again.
#[derive(Default)]
pub(super) struct Room {
    turn: Option<TurnId>,
    overhead: Option<(Text, Overhead)>,
    /// What is told in this very moment, read once for all that is asked in it.
    told: Option<Words>,
}

impl<V: View> Actor<V> {
    /// The server's limits, with what instructions and tools take in the turn that runs.
    pub(super) async fn limits(&mut self) -> Limits {
        let Some(turn) = self.state.turn().map(|turn| turn.id) else { return self.kit.limits };
        if self.room.turn != Some(turn) {
            let place = self.place();
            let told = self.kit.instructions.for_turn(&place);
            self.room.told = Some(told.clone());
            let told = told.text();
            if self.room.overhead.as_ref().is_none_or(|(before, _)| before != told) {
                let tools = self.kit.tools.clone();
                let overhead = self.kit.tokens.overhead(told.clone(), tools).await;
                self.room.overhead = Some((told.clone(), overhead));
            }
            self.room.turn = Some(turn);
        }
        let overhead = self.room.overhead.as_ref().map(|(_, overhead)| *overhead);
        let window = match self.model().card().window_known {
            true => WindowSize::Known,
            false => WindowSize::Assumed,
        };
        Limits { overhead: overhead.unwrap_or_default(), window, ..self.kit.limits }
    }

    /// What the model is told that is asked now.
    pub(super) fn instructions(&mut self, place: &Place) -> Words {
        let told = self.room.told.take();
        told.unwrap_or_else(|| self.kit.instructions.for_turn(place))
    }

    /// What was read may be another thing by the next time.
    pub(super) fn forget_told(&mut self) {
        self.room.told = None;
    }

    /// A limit in dollars says nothing of a model whose price is not known: people should know.
    pub(super) async fn tell_unpriced(&mut self) {
        if self.kit.limits.budget.cost_micros_max.is_none() {
            return;
        }
        let model = self.model();
        let name = Text::from(model.name());
        if model.card().price.is_some() || self.state.is_told_unpriced(&name) {
            return;
        }
        let text = format!(
            "The price of {name:?} is not known, so MAX_SESSION_COST_USD does not bound what it \
             costs; give its price in MODELS_FILE, or set MAX_SESSION_TOKENS"
        );
        let (level, code) = (Level::Warning, UNPRICED_CODE.into());
        self.take(vec![Event::Noticed { level, text: text.into(), code }]).await;
    }
}
