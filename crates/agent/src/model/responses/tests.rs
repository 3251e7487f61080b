//! Requests and answers of the Responses interface. `golden/models/responses` holds them.

use super::*;
use crate::model::openai::testing::Golden;

mod answers;
mod requests;

const API: Responses = Responses::new("OpenAI");

fn golden() -> Golden {
    Golden::new("responses")
}
