//! What a session may cost: checked before each model call, against what its calls cost so far.
//!
//! A session over its budget stays usable for everything that asks no model, and
//! goes on once the limit is raised.

use crate::item::{Fault, Usage};

/// The fault of a session that has used up what it may cost.
pub const BUDGET_CODE: &str = "budget_exceeded";

/// The notice of a model whose price nobody knows, where there is a limit in dollars.
pub const UNPRICED_CODE: &str = "price_unknown";

/// Bounds of one session's model calls, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// In millionths of a dollar. What a model of unknown price cost does not count.
    pub cost_micros_max: Option<u64>,
    /// Input and output.
    pub tokens_max: Option<u64>,
}

/// What is wrong with another call, if anything is.
pub fn exceeded(budget: &Budget, spent: &Usage) -> Option<Fault> {
    let (cost, tokens) = (spent.cost_micros.unwrap_or(0), spent.total_tokens());
    let told = match (budget.cost_micros_max, budget.tokens_max) {
        (Some(most), _) if cost >= most => {
            let (cost, most) = (dollars(cost), dollars(most));
            format!(
                "This session has cost {cost} of the {most} that it may cost \
                 (MAX_SESSION_COST_USD)"
            )
        }
        (_, Some(most)) if tokens >= most => {
            format!(
                "This session has used {tokens} of the {most} tokens that it may use \
                 (MAX_SESSION_TOKENS)"
            )
        }
        _ => return None,
    };
    let message = format!("{told}. Raise the limit to go on with it, or begin a new session");
    Some(Fault::new(BUDGET_CODE, message))
}

/// Money as people write it, to the hundredth of a cent.
fn dollars(micros: u64) -> String {
    let parts = micros.div_ceil(100);
    format!("${}.{:04}", parts / 10_000, parts % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_reached_is_named_with_what_was_used() {
        let spent = Usage { input_tokens: 90, output_tokens: 10, ..Usage::default() };
        let tokens = |most| Budget { tokens_max: Some(most), ..Budget::default() };
        assert_eq!(exceeded(&tokens(101), &spent), None);
        let fault = exceeded(&tokens(100), &spent).map(|fault| fault.message);
        let want = "This session has used 100 of the 100 tokens that it may use \
                    (MAX_SESSION_TOKENS). Raise the limit to go on with it, or begin a new session";
        assert_eq!(fault.as_deref(), Some(want));
        let money = Budget { cost_micros_max: Some(1_500_000), ..Budget::default() };
        assert_eq!(exceeded(&money, &spent), None, "an unknown price is no cost");
        let spent = Usage { cost_micros: Some(1_500_050), ..spent };
        let fault = exceeded(&money, &spent).map(|fault| fault.message);
        let want = "This session has cost $1.5001 of the $1.5000 that it may cost \
                    (MAX_SESSION_COST_USD)";
        assert!(fault.is_some_and(|fault| fault.starts_with(want)));
    }
}
