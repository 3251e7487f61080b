"""The scripted model server speaks the four APIs: the providers' own SDKs say so."""

import base64
import contextlib
import json
import subprocess

from fakemodel import FakeModel, program
from harness import WAIT_SECS, eq

THINK = "Let me see what is there."
SAY = "I will look at both: ä, 漢, 🙂, \"quoted\"\nand done."
CALLS = [("list_files", {"path": ".", "deep": True}), ("read_file", {"path": "a \"b\".txt"})]
SIGNATURE = base64.b64encode(b"only the model can read this").decode()
REPLY = {
    "blocks": [{"think": THINK, "signature": SIGNATURE}, {"say": SAY},
               *({"call": name, "args": args} for name, args in CALLS)],
    "usage": {"input": 1000, "output": 70, "cached": 800, "cache_written": 50, "reasoning": 20},
    "pieces": 3,
}
LIMITED = {"http": {"status": 429, "headers": {"retry-after": "7"}}}
BROKEN = {"blocks": [{"say": "Half of"}], "error": {"type": "overloaded", "message": "too busy"}}
# Every style that a reader of server-sent events must take.
STYLES = {"crlf": True, "comments": True, "split_data": True, "bom": True}


@contextlib.contextmanager
def raises(kind):
    """Holds the error that the block must end with."""
    caught = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
        return
    raise AssertionError(f"no {kind.__name__}")


def openai_client(model):
    import openai

    return openai.OpenAI(base_url=f"{model.url}/v1", api_key="sk-fake", max_retries=0)


def anthropic_client(model):
    import anthropic

    return anthropic.Anthropic(base_url=model.url, api_key="sk-fake", max_retries=0)


def gemini_client(model):
    from google import genai

    return genai.Client(api_key="fake", http_options={"base_url": model.url})


# OpenAI Responses

RESPONSES = {"model": "m", "input": "Hi", "include": ["reasoning.encrypted_content"]}


def check_response(response):
    eq(response.output_text, SAY, "text")
    reasoning, _, *calls = response.output
    eq(reasoning.summary[0].text, THINK, "summary")
    eq(reasoning.encrypted_content, SIGNATURE, "encrypted content")
    eq([(call.name, json.loads(call.arguments)) for call in calls], CALLS, "calls")
    assert calls[0].call_id != calls[1].call_id, calls
    usage = response.usage
    eq((usage.input_tokens, usage.output_tokens, usage.total_tokens), (1000, 70, 1070), "tokens")
    details = usage.input_tokens_details
    eq((details.cached_tokens, details.cache_write_tokens), (800, 50), "cached tokens")
    eq(usage.output_tokens_details.reasoning_tokens, 20, "reasoning tokens")
    eq(response.status, "completed", "status")


def test_responses(t):
    model = FakeModel(test=t)
    client = openai_client(model)
    model.script([REPLY])
    check_response(client.responses.create(**RESPONSES))
    request = model.requests()[0]
    eq((request["n"], request["method"], request["path"]), (1, "POST", "/v1/responses"))
    eq(request["headers"]["authorization"], "Bearer sk-fake", "key")
    eq(request["body"], RESPONSES, "body")


def test_responses_stream(t):
    model = FakeModel(test=t)
    client = openai_client(model)
    for style in ({}, STYLES, {"no_space": True, "unknown_events": True}):
        model.script([{**REPLY, "style": style}])
        with client.responses.stream(**RESPONSES) as stream:
            events = list(stream)
            check_response(stream.get_final_response())
        numbers = [event.sequence_number for event in events
                   if event.type != "response.fake_unknown"]
        eq(numbers, list(range(len(numbers))), "sequence numbers")
        grown = {kind: "".join(event.delta for event in events if event.type == kind)
                 for kind in ("response.output_text.delta",
                              "response.reasoning_summary_text.delta",
                              "response.function_call_arguments.delta")}
        arguments = "".join(json.dumps(args, separators=(",", ":"), sort_keys=True)
                            for _, args in CALLS)
        eq(list(grown.values()), [SAY, THINK, arguments], "deltas")


def test_responses_local_shell(t):
    model = FakeModel(test=t)
    client = openai_client(model)
    for stream in (False, True):
        model.script([{"blocks": [{"shell": ["ls", "-l"]}]}, {"blocks": [{"shell": ["ls"]}]}])
        response = final_response(client, stream, tools=[{"type": "local_shell"}])
        call = response.output[0]
        eq((call.type, call.action.command), ("local_shell_call", ["ls", "-l"]), "call")
        call = final_response(client, stream).output[0]
        eq((call.type, call.name, json.loads(call.arguments)),
           ("function_call", "shell", {"command": ["ls"]}), "call where no shell is offered")


def final_response(client, stream, **more):
    if not stream:
        return client.responses.create(model="m", input="Hi", **more)
    with client.responses.stream(model="m", input="Hi", **more) as events:
        return events.get_final_response()


def test_responses_ends(t):
    model = FakeModel(test=t)
    client = openai_client(model)
    model.script([{"blocks": [{"say": "cut sh"}], "stop": "length"}] * 2)
    response = client.responses.create(**RESPONSES)
    eq(response.incomplete_details.reason, "max_output_tokens", "whole")
    last = list(client.responses.create(**RESPONSES, stream=True))[-1]
    eq((last.type, last.response.status), ("response.incomplete", "incomplete"), "stream")
    model.script([{"blocks": [{"say": "No."}], "stop": "refusal"}] * 2)
    eq(client.responses.create(**RESPONSES).output[0].content[0].refusal, "No.", "whole")
    with client.responses.stream(**RESPONSES) as stream:
        eq(stream.get_final_response().output[0].content[0].refusal, "No.", "stream")


def test_responses_errors(t):
    import openai

    model = FakeModel(test=t)
    client = openai_client(model)
    for stream in (False, True):
        model.script([LIMITED])
        with raises(openai.RateLimitError) as caught:
            client.responses.create(**RESPONSES, stream=stream)
        eq(caught[0].code, "rate_limit_exceeded", "code")
        eq(caught[0].response.headers["retry-after"], "7", "header")
    # The SDK gives the documented form as an event, and raises the form that services send.
    model.script([BROKEN, {**BROKEN, "error": {**BROKEN["error"], "form": "nested"}},
                  {**BROKEN, "error": {**BROKEN["error"], "form": "failed"}}])
    last = list(client.responses.create(**RESPONSES, stream=True))[-1]
    eq((last.type, last.code, last.message), ("error", "server_is_overloaded", "too busy"))
    text = ""
    with raises(openai.APIError) as caught:
        for event in client.responses.create(**RESPONSES, stream=True):
            text += event.delta if event.type == "response.output_text.delta" else ""
    eq((text, caught[0].code, caught[0].message), ("Half of", "server_is_overloaded", "too busy"))
    last = list(client.responses.create(**RESPONSES, stream=True))[-1]
    eq((last.type, last.response.error.message), ("response.failed", "too busy"))


# OpenAI Chat Completions

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def check_completion(completion):
    choice = completion.choices[0]
    eq(choice.message.content, SAY, "text")
    eq(choice.message.reasoning_content, THINK, "reasoning")
    calls = choice.message.tool_calls
    eq([(call.function.name, json.loads(call.function.arguments)) for call in calls], CALLS)
    assert calls[0].id != calls[1].id, calls
    eq(choice.finish_reason, "tool_calls", "finish reason")
    usage = completion.usage
    eq((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (1000, 70, 1070))
    eq(usage.prompt_tokens_details.cached_tokens, 800, "cached tokens")
    eq(usage.completion_tokens_details.reasoning_tokens, 20, "reasoning tokens")


def test_chat(t):
    model = FakeModel(test=t)
    model.script([REPLY])
    check_completion(openai_client(model).chat.completions.create(**CHAT))


def test_chat_stream(t):
    model = FakeModel(test=t)
    client = openai_client(model)
    for style in ({}, STYLES, {"no_space": True, "unknown_events": True, "done_twice": True}):
        model.script([{**REPLY, "style": style}])
        options = {"include_usage": True}
        with client.chat.completions.stream(**CHAT, stream_options=options) as stream:
            events = list(stream)
            check_completion(stream.get_final_completion())
        text = "".join(event.delta for event in events if event.type == "content.delta")
        eq(text, SAY, "deltas")


def test_chat_usage_only_where_asked(t):
    model = FakeModel(test=t)
    chunks = list(openai_client(model).chat.completions.create(**CHAT, stream=True))
    eq([chunk.usage for chunk in chunks], [None] * len(chunks), "usage")
    eq(chunks[-1].choices[0].finish_reason, "stop", "finish reason")


def test_chat_errors(t):
    import openai

    model = FakeModel(test=t)
    client = openai_client(model)
    for stream in (False, True):
        model.script([LIMITED])
        with raises(openai.RateLimitError):
            client.chat.completions.create(**CHAT, stream=stream)
    model.script([BROKEN])
    text = ""
    with raises(openai.APIError) as caught:
        for chunk in client.chat.completions.create(**CHAT, stream=True):
            text += chunk.choices[0].delta.content or ""
    eq((text, caught[0].message), ("Half of", "too busy"), "what came, and the error")


# Anthropic Messages

MESSAGES = {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": "Hi"}]}


def check_message(message):
    thinking, text, *calls = message.content
    eq((thinking.type, thinking.thinking, thinking.signature), ("thinking", THINK, SIGNATURE))
    eq(text.text, SAY, "text")
    eq([(call.name, call.input) for call in calls], CALLS, "calls")
    assert calls[0].id != calls[1].id, calls
    eq(message.stop_reason, "tool_use", "stop reason")
    usage = message.usage
    eq((usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens,
        usage.output_tokens), (150, 800, 50, 70), "tokens; their sum is the prompt")


def test_anthropic(t):
    model = FakeModel(test=t)
    model.script([REPLY])
    check_message(anthropic_client(model).messages.create(**MESSAGES))


def test_anthropic_stream(t):
    model = FakeModel(test=t)
    client = anthropic_client(model)
    for style in ({}, STYLES, {"no_space": True, "unknown_events": True}):
        model.script([{**REPLY, "style": style}])
        with client.messages.stream(**MESSAGES) as stream:
            events = list(stream)
            check_message(stream.get_final_message())
        eq("".join(e.text for e in events if e.type == "text"), SAY, "deltas")
        eq("".join(e.thinking for e in events if e.type == "thinking"), THINK, "thinking")


def test_anthropic_redacted_thinking(t):
    model = FakeModel(test=t)
    client = anthropic_client(model)
    model.script([{"blocks": [{"redacted": "b3BhcXVl"}, {"say": "Yes."}]}] * 2)
    eq(client.messages.create(**MESSAGES).content[0].data, "b3BhcXVl", "whole")
    with client.messages.stream(**MESSAGES) as stream:
        block = stream.get_final_message().content[0]
    eq((block.type, block.data), ("redacted_thinking", "b3BhcXVl"), "stream")


def test_anthropic_errors(t):
    import anthropic

    model = FakeModel(test=t)
    client = anthropic_client(model)
    model.script([LIMITED, LIMITED, BROKEN])
    for stream in (False, True):
        with raises(anthropic.RateLimitError) as caught:
            client.messages.create(**MESSAGES, stream=stream)
        eq(caught[0].type, "rate_limit_error", "type")
    text = ""
    with raises(anthropic.APIStatusError) as caught, client.messages.stream(**MESSAGES) as stream:
        for piece in stream.text_stream:
            text += piece
    eq((text, caught[0].type, caught[0].api_message), ("Half of", "overloaded_error", "too busy"))


# Gemini


def parts_of(answers):
    return [part for answer in answers for part in answer.candidates[0].content.parts]


def check_gemini(answers):
    parts = parts_of(answers)
    eq("".join(p.text for p in parts if p.text and p.thought), THINK, "thoughts")
    eq("".join(p.text for p in parts if p.text and not p.thought), SAY, "text")
    calls = [part for part in parts if part.function_call]
    eq([(part.function_call.name, part.function_call.args) for part in calls], CALLS, "calls")
    assert calls[0].thought_signature, "the first call is signed"
    signatures = [part.thought_signature for part in parts if part.thought]
    eq(signatures[-1], base64.b64decode(SIGNATURE), "signature of the thoughts")
    last = answers[-1]
    eq(last.candidates[0].finish_reason.value, "STOP", "finish reason")
    usage = last.usage_metadata
    eq((usage.prompt_token_count, usage.cached_content_token_count, usage.candidates_token_count,
        usage.thoughts_token_count, usage.total_token_count), (1000, 800, 50, 20, 1070), "tokens")
    eq(last.model_version, "m", "model version")
    eq(len({answer.response_id for answer in answers}), 1, "response ids")


def test_gemini(t):
    model = FakeModel(test=t)
    client = gemini_client(model)
    model.script([REPLY])
    check_gemini([client.models.generate_content(model="m", contents="Hi")])


def test_gemini_stream(t):
    model = FakeModel(test=t)
    client = gemini_client(model)
    # Its reader takes neither comments, nor a missing space, nor a byte order mark.
    for style in ({}, {"crlf": True, "split_data": True}):
        model.script([{**REPLY, "style": style}])
        check_gemini(list(client.models.generate_content_stream(model="m", contents="Hi")))
    assert model.requests()[0]["path"].endswith("/models/m:streamGenerateContent?alt=sse")


def test_gemini_array(t):
    model = FakeModel(test=t)
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "say: one two"}]}]})
    status, answer = model.http(
        "POST", "/v1beta/models/m:streamGenerateContent", body, {"x-goog-api-key": "k"})
    eq(status, 200, "status")
    texts = [part["text"] for answer in json.loads(answer)
             for part in answer["candidates"][0]["content"]["parts"]]
    eq("".join(texts), "one two", "texts of the array")


def test_gemini_errors(t):
    from google.genai import errors

    model = FakeModel(test=t)
    client = gemini_client(model)
    model.script([LIMITED, LIMITED, BROKEN])
    with raises(errors.ClientError) as caught:
        client.models.generate_content(model="m", contents="Hi")
    eq((caught[0].code, caught[0].status), (429, "RESOURCE_EXHAUSTED"), "whole")
    with raises(errors.ClientError) as caught:
        list(client.models.generate_content_stream(model="m", contents="Hi"))
    eq((caught[0].code, caught[0].status), (429, "RESOURCE_EXHAUSTED"), "stream")
    text = ""
    with raises(errors.APIError) as caught:
        for answer in client.models.generate_content_stream(model="m", contents="Hi"):
            text += answer.text or ""
    eq((text, caught[0].code, caught[0].message), ("Half of", 503, "too busy"), "in the stream")


# What is not a model's answer


def test_keys_are_wanted(t):
    import anthropic
    import openai
    from google import genai

    model = FakeModel(test=t)
    with raises(openai.AuthenticationError):
        headers = {"Authorization": openai.Omit()}
        openai_client(model).responses.create(**RESPONSES, extra_headers=headers)
    with raises(anthropic.AuthenticationError):
        headers = {"Authorization": anthropic.Omit(), "X-Api-Key": anthropic.Omit()}
        anthropic_client(model).messages.create(**MESSAGES, extra_headers=headers)
    options = {"base_url": model.url, "headers": {"x-goog-api-key": ""}}
    client = genai.Client(api_key="k", http_options=options)
    with raises(genai.errors.ClientError) as caught:
        client.models.generate_content(model="m", contents="Hi")
    eq((caught[0].code, caught[0].status), (401, "UNAUTHENTICATED"), "Gemini")


def test_models_are_listed(t):
    model = FakeModel(test=t)
    gemini = gemini_client(model)
    names = ["fake-model", "fake-model-mini"]
    eq([it.id for it in openai_client(model).models.list()], names, "OpenAI")
    eq([it.id for it in anthropic_client(model).models.list()], names, "Anthropic")
    eq([it.name.removeprefix("models/") for it in gemini.models.list()], names, "Gemini")


def test_a_service_account_gets_tokens(t):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from google.auth.transport.requests import Request
    from google.oauth2 import service_account

    model = FakeModel(None, "--token-secs", 1000, test=t)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()).decode()
    account = {"type": "service_account", "client_email": "a@b.example", "private_key": key,
               "private_key_id": "1", "token_uri": f"{model.url}/oauth2/token"}
    credentials = service_account.Credentials.from_service_account_info(
        account, scopes=["https://www.googleapis.com/auth/cloud-platform"])
    for number in (1, 2):
        credentials.refresh(Request())
        eq(credentials.token, f"fake-token-{number}", "token")
    assert credentials.valid, "good for 1000 seconds"


def test_a_person_can_talk_to_it(t):
    model = FakeModel(test=t)
    gemini = gemini_client(model)
    text = "think: Hm.\nsay: Hello,\nyou.\nusage: 12 3 4"
    response = openai_client(model).responses.create(model="m", input=text)
    eq((response.output_text, response.usage.input_tokens), ("Hello,\nyou.", 12), "Responses")
    answer = gemini.models.generate_content(model="m", contents=text)
    eq((answer.text, answer.usage_metadata.cached_content_token_count), ("Hello,\nyou.", 4))
    messages = [{"role": "user", "content": "What is this?"}]
    message = anthropic_client(model).messages.create(
        model="m", max_tokens=9, messages=messages)
    eq(message.content[0].text, "You said: What is this?", "Anthropic")
    messages += [{"role": "assistant", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "3 files\na\nb"}]
    completion = openai_client(model).chat.completions.create(model="m", messages=messages)
    eq(completion.choices[0].message.content, "Done. 3 files", "Chat")


def test_the_program(t):
    script = t.dir / "script.json"
    script.write_text(json.dumps([{"blocks": [{"say": "from a file"}]}]))
    model = FakeModel(None, "--script", script, test=t)
    eq(model.state(), {"open": 0, "aborted": 0, "queued": 1}, "state")
    eq(openai_client(model).responses.create(**RESPONSES).output_text, "from a file")
    eq(model.stop(), 0, "exit code after SIGTERM")
    script.write_text(json.dumps([{"wrong": 1}]))
    run = subprocess.run([program(), "--script", script], capture_output=True, text=True,
                         timeout=WAIT_SECS)
    assert run.returncode == 1 and "wrong" in run.stderr and str(script) in run.stderr, run
    run = subprocess.run([program(), "--help"], capture_output=True, text=True, timeout=WAIT_SECS)
    assert run.returncode == 0 and "cut_block" in run.stdout and "/_script" in run.stdout, run
