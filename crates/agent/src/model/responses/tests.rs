//! Requests and answers of the Responses interface. `golden/models/responses` holds them.

use super::*;
use crate::model::testing::Interface;

mod answers;
mod requests;

const API: Interface = Interface {
    api: &Responses::new("OpenAI"),
    folder: "responses",
    model: "test-model",
    instructions: "You are a careful agent.",
    tools: ["Runs a script.", "Patches."],
    words: WORDS,
    keeps_objects: true,
};

const WORDS: &str = "
    type item response delta text arguments item_id output_index id content_index summary_index
    content summary call_id name action command env error code message usage input_tokens
    input_tokens_details output cached_tokens incomplete_details reason model refusal reasoning
    output_text summary_text reasoning_text function_call local_shell_call max_output_tokens
    response.output_item.added response.output_item.done response.output_text.delta
    response.output_text.done response.refusal.delta response.refusal.done
    response.reasoning_summary_text.delta response.reasoning_text.delta
    response.function_call_arguments.delta response.function_call_arguments.done
    response.completed response.incomplete response.failed response.created encrypted_content
    status 0
";

#[test]
fn errors_of_whoever_stands_in_front() {
    API.check_errors_in_front();
}
