//! Requests and answers of the Chat Completions interface. `golden/models/completions` holds them.

use super::*;
use crate::model::testing::Interface;

mod answers;
mod requests;

const API: Interface = Interface {
    api: &Completions::new("The server"),
    folder: "completions",
    model: "test-model",
    instructions: "You are a careful agent.",
    tools: ["Runs a script.", "Patches."],
    words: WORDS,
    keeps_objects: true,
};

const WORDS: &str = "
    choices delta message content text reasoning_content reasoning reasoning_details
    reasoning.text reasoning.encrypted signature type index tool_calls id function name
    arguments function_call refusal thinking finish_reason stop length content_filter error code
    usage prompt_tokens completion_tokens prompt_tokens_details cached_tokens model object
    detail metadata raw status extra_content {}
";

#[test]
fn errors_of_whoever_stands_in_front() {
    API.check_errors_in_front();
}
