//! Requests and answers of the Chat Completions interface. `golden/models/completions` holds them.

use super::*;
use crate::model::openai::testing::Golden;

mod answers;
mod requests;

const API: Completions = Completions::new("The server");

fn golden() -> Golden {
    Golden::new("completions")
}
