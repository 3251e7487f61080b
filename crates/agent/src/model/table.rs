//! What is known of models: windows, limits, prices, abilities. One line each, in `models.json`;
//! a file of the operator's may add lines and replace ours.
//!
//! A model nobody knows is still a model: it gets the provider's defaults. Never reads a file and
//! never asks a provider.

use std::sync::LazyLock;

use polyloop_session::item::Usage;

use self::row::Row;
use super::offline::OFFLINE_TOKENS_MAX;

mod row;
#[cfg(test)]
mod tests;

/// Prices are for this many tokens.
const PRICED_TOKENS: u128 = 1_000_000;

/// What is known of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The size of its window.
    pub tokens_max: u64,
    /// Somebody said so; else it is what most of its family have.
    pub window_known: bool,
    /// The most it writes in one answer.
    pub output_tokens_max: u64,
    pub price: Option<Price>,
    /// Takes pictures.
    pub images: bool,
    /// Can be asked to reason, and shows it.
    pub reasoning: bool,
    /// Was trained on its provider's own shell tool.
    pub native_shell: bool,
}

/// In millionths of a dollar for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub input: u64,
    pub output: u64,
    /// Of input that came from the cache.
    pub cached: u64,
    /// Of input that was written to it.
    pub cache_written: u64,
}

impl Price {
    /// What a call cost, in millionths of a dollar, to the nearest one.
    pub fn cost_micros(&self, usage: &Usage) -> u64 {
        let counted_apart = usage.cached_tokens.saturating_add(usage.cache_written_tokens);
        let fresh_tokens = usage.input_tokens.saturating_sub(counted_apart);
        let parts = [
            (fresh_tokens, self.input),
            (usage.cached_tokens, self.cached),
            (usage.cache_written_tokens, self.cache_written),
            (usage.output_tokens, self.output),
        ];
        let cost = parts
            .into_iter()
            .map(|(tokens, price)| u128::from(tokens) * u128::from(price))
            .fold(PRICED_TOKENS / 2, u128::saturating_add)
            / PRICED_TOKENS;
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

/// Whose defaults a model has of which nothing else is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    OpenAi,
    /// Somebody's server that speaks OpenAI's older interface; most run on one machine.
    Chat,
    Anthropic,
    Google,
    Offline,
}

impl Family {
    fn card(self) -> Card {
        let (tokens_max, output_tokens_max) = match self {
            Family::OpenAi => (128_000, 16_000),
            Family::Chat => (32_000, 4_000),
            Family::Anthropic => (200_000, 8_000),
            Family::Google => (1_000_000, 8_000),
            Family::Offline => (OFFLINE_TOKENS_MAX, OFFLINE_TOKENS_MAX),
        };
        Card {
            tokens_max,
            window_known: self == Family::Offline,
            output_tokens_max,
            price: None,
            images: self != Family::Chat,
            // Asking a model to reason that cannot is an error with every provider.
            reasoning: self == Family::Offline,
            native_shell: false,
        }
    }
}

static BUILT_IN: LazyLock<Vec<Row>> =
    LazyLock::new(|| row::rows(include_str!("models.json")).unwrap_or_default());

/// Our lines, and before them the operator's.
#[derive(Clone, Debug, Default)]
pub struct Table {
    theirs: Vec<Row>,
}

impl Table {
    pub fn built_in() -> Table {
        Table::default()
    }

    /// With the lines of a file of the same form, which come first. The error names line and
    /// field.
    pub fn with_file(text: &str) -> Result<Table, String> {
        Ok(Table { theirs: row::rows(text)? })
    }

    /// Each fact comes from the operator's line, else from ours, else from the family.
    pub fn card(&self, model: &str, family: Family) -> Card {
        let mut card = family.card();
        if family == Family::Offline {
            return card; // It is what it is, whatever a line with a `*` says.
        }
        for row in [best(&BUILT_IN, model), best(&self.theirs, model)].into_iter().flatten() {
            row.write(&mut card);
        }
        // A line may narrow the window and leave the rest to the next one.
        card.output_tokens_max = card.output_tokens_max.min(card.tokens_max);
        card
    }

    /// The models with a line of their own: the operator's, and those that we know.
    pub fn names(&self) -> (impl Iterator<Item = &str>, impl Iterator<Item = &str>) {
        fn named(rows: &[Row]) -> impl Iterator<Item = &str> {
            rows.iter().filter_map(Row::model)
        }
        (named(&self.theirs), named(&BUILT_IN))
    }

    /// Whether there is a line for the model.
    pub fn knows(&self, model: &str) -> bool {
        best(&self.theirs, model).or_else(|| best(&BUILT_IN, model)).is_some()
    }
}

/// The line that fits a name best: the name itself, else the longest beginning of it.
fn best<'r>(rows: &'r [Row], model: &str) -> Option<&'r Row> {
    rows.iter()
        .filter_map(|row| Some((row.fit(model)?, row)))
        .max_by_key(|(fit, _)| *fit)
        .map(|(_, row)| row)
}
