//! What clients send, and what providers stream.

use std::hint::black_box;

use polyloop_agent::model::anthropic::Anthropic;
use polyloop_agent::model::api::Api;
use polyloop_agent::model::completions::Completions;
use polyloop_agent::model::gemini::Gemini;
use polyloop_agent::model::responses::Responses;
use polyloop_agent::model::sse::{Event, Parser};
use polyloop_dialects::{Client, detect};
use polyloop_session::SessionId;
use polyloop_session::wait::Who;

use crate::meter::Meter;

const ROUNDS: u64 = 200;

/// A person's message in each dialect.
const MESSAGES: [(&str, &str); 4] = [
    (
        "agentloop",
        r#"{"id":"9f1c2b3a4d5e6f70","type":"user_input","payload":{"input":[{"type":"input_text","text":"What does the first file say, and what the second?"}]}}"#,
    ),
    (
        "unified",
        r#"{"session_id":"count","type":"user_message","id":"9f1c2b3a4d5e6f70","content":"What does the first file say, and what the second?"}"#,
    ),
    (
        "loom",
        r#"{"id":"9f1c2b3a4d5e6f70","type":"run","message":"What does the first file say, and what the second?","agent":"react","approvals":true,"thread_id":"count"}"#,
    ),
    (
        "chat",
        r#"{"type":"chat","message":"What does the first file say, and what the second?","session_id":"count"}"#,
    ),
];

/// What comes first in a stream, and a piece of text that may come any number of times.
struct Streamed {
    api: Box<dyn Api>,
    first: &'static str,
    more: &'static str,
}

fn streams() -> [Streamed; 4] {
    let completions = "data: {\"id\":\"chatcmpl-C1\",\"object\":\"chat.completion.chunk\",\
        \"created\":1789000000,\"model\":\"gpt-4.1\",\"choices\":[{\"index\":0,\"delta\":\
        {\"content\":\"of interest \"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
    [
        Streamed {
            api: Box::new(Completions::new("OpenAI")),
            first: completions,
            more: completions,
        },
        Streamed {
            api: Box::new(Responses::new("OpenAI")),
            first: "event: response.output_item.added\ndata: {\"type\":\
                \"response.output_item.added\",\"sequence_number\":2,\"output_index\":0,\"item\":\
                {\"id\":\"msg_01\",\"type\":\"message\",\"status\":\"in_progress\",\"content\":[],\
                \"role\":\"assistant\"}}\n\n",
            more: "event: response.output_text.delta\ndata: {\"type\":\
                \"response.output_text.delta\",\"sequence_number\":4,\"item_id\":\"msg_01\",\
                \"output_index\":0,\"content_index\":0,\"delta\":\"of interest \",\
                \"logprobs\":[]}\n\n",
        },
        Streamed {
            api: Box::new(Anthropic),
            first: "event: content_block_start\ndata: {\"type\":\"content_block_start\",\
                \"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            more: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\
                \"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"of interest \"}}\n\n",
        },
        Streamed {
            api: Box::new(Gemini),
            first: "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"nothing \"}],\
                \"role\": \"model\"}, \"index\": 0}]}\n\n",
            more: "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \
                \"of interest \"}],\"role\": \"model\"}, \"index\": 0}], \"usageMetadata\": \
                {\"promptTokenCount\": 2100, \"candidatesTokenCount\": 2, \"totalTokenCount\": \
                2102}, \"modelVersion\": \"gemini-2.5-pro\", \"responseId\": \"q1EKaaODFdjI\"}\n\n",
        },
    ]
}

pub fn count(meter: &Meter) {
    let client = Client {
        who: Who::via("count"),
        session: SessionId::parse("count").ok(),
        attached: Vec::new(),
        shown: None,
    };
    for (name, message) in MESSAGES {
        let dialect = detect::by_name(name).unwrap();
        meter.count(&format!("decode {name} message"), ROUNDS, |_| {
            black_box(dialect.decode(black_box(message), &client)).unwrap();
        });
    }
    for Streamed { api, first, more } in streams() {
        let (mut parser, mut decoder) = (Parser::new(), api.decoder());
        let mut read = |text: &str| {
            let mut chunks = 0;
            let told = |event: &Event| chunks += black_box(decoder.event(event)).len();
            parser.read(black_box(text.as_bytes()), told).unwrap();
            chunks
        };
        read(first);
        meter.count(&format!("decode {} chunk", api.name()), ROUNDS, |_| {
            assert!(read(more) > 0);
        });
    }
}
