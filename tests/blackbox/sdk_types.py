"""The four interfaces of models: how a server is pointed at each, and whether what it then sends
is what the provider's own SDK would send.

A recorded request is held against the types of the official SDKs, in which every key must be
known, and against the rules that no type can say: whose turn it is, and that every call has its
one result, right behind it. `flow` reads all four alike.
"""

import functools
import json
import re
import threading
from typing import Any

import anthropic
import openai
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google import genai
from google.genai import types
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from harness import eq

ERRORS_SHOWN = 8
PUTTING_TOGETHER = threading.Lock()
BREAKPOINTS_MAX = 4
# What all of them take for a tool's name.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
BLANK = re.compile(r"\s*")


def listed(schema: Any) -> Any:
    """A schema whose lists are looked at as a whole, not only when somebody reads them."""
    if isinstance(schema, list):
        return [listed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: listed(inner) for name, inner in schema.items()}
    return {**schema, "type": "list"} if schema.get("type") == "generator" else schema


@functools.cache
def validator(kind):
    # Types are put together when they are first used, which two threads must not do at once.
    with PUTTING_TOGETHER:
        # A dictionary type takes over the rule of the list around it; it has none of its own.
        adapter = TypeAdapter(list[kind], config=ConfigDict(extra="forbid"))
        return SchemaValidator(listed(adapter.core_schema))


def known(kind, body):
    """A request fits a type of its SDK, of which no key may be unknown."""
    try:
        # What only fits types of answers comes out as an object.
        eq(validator(kind).validate_python([body]), [body], "request")
    except ValidationError as error:
        raise AssertionError(f"the SDK does not know this: {told(error)}") from None


def told(error):
    """The unknown keys first: the others are mostly of types that were not meant."""
    wrong = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    lines = [f"{one['loc'][-4:]} {one['msg']}: {str(one['input'])[:120]}" for one in wrong]
    return "\n  ".join([str(len(lines)), *lines[:ERRORS_SHOWN]])


def part(role, kind, message, **more):
    return {"role": role, "kind": kind, "message": message, **more}


def paired(flow):
    """Every call has exactly one result: behind the message that has the calls, in their order."""
    owed, answering = [], False
    for one in flow:
        if one["kind"] == "result":
            assert owed, f"a result of no call: {one}"
            call, answering = owed.pop(0), True
            eq((one["id"], one["name"] or call["name"]), (call["id"], call["name"]), "result of")
            continue
        goes_on = owed and not answering and one["message"] == owed[0]["message"]
        assert not owed or goes_on, f"no result of {owed} before {one}"
        answering = False
        if one["kind"] == "call":
            owed.append(one)
    assert not owed, f"no result of {owed}"
    ids = [one["id"] for one in flow if one["kind"] == "call" and one["id"] is not None]
    eq(len(set(ids)), len(ids), f"ids of calls, which are unique: {ids}")


class Api:
    """What the interfaces have in common; each says the rest."""

    id_chars_max = 1_000

    def check(self, request):
        """All that must hold of any request of a conversation."""
        body = request["body"]
        self.typed(body)
        self.roles(body)
        flow = self.flow(body)
        eq(flow[-1]["role"], "user", f"who spoke last, {flow[-1]}")
        for one in flow:
            blank = one["kind"] == "text" and BLANK.fullmatch(one["text"])
            assert not blank, f"an empty text: {one}"
            if one["kind"] == "call":
                assert NAME.fullmatch(one["name"]), f"no name of a tool: {one['name']!r}"
                assert len(one["id"] or "") <= self.id_chars_max, f"too long: {one['id']}"
        paired(flow)
        assert len(self.instructions(body)) > 100, "no instructions"
        self.signed(request["headers"])
        return flow

    def line(self, body):
        """The conversation in the interface's own words, which only ever grows."""
        return body[self.said_in]

    def settings(self, url, **more):
        """The environment of a server that speaks it there."""
        return {**self.env, **self.at(url), "MODEL": self.model, "ALLOW_BYPASS": "true", **more}

    def same(self, one, other):
        """Whether two bodies ask the same."""
        return one == other


class Responses(Api):
    name, model, path, said_in = "responses", "gpt-5", "/v1/responses", "input"
    id_chars_max = 64
    env = {"PROVIDER": "openai", "OPENAI_WIRE_API": "responses", "OPENAI_API_KEY": "sk-resp-1f2e3d"}

    def at(self, url):
        return {"OPENAI_BASE_URL": f"{url}/v1"}

    def signed(self, headers):
        eq(headers.get("authorization"), f"Bearer {self.env['OPENAI_API_KEY']}", "key")

    def typed(self, body):
        # Its guide names a shell's result by `call_id`, its types by `id`: both are sent.
        items = [{name: value for name, value in item.items()
                  if (item["type"], name) != ("local_shell_call_output", "call_id")}
                 for item in body["input"]]
        known(ResponseCreateParamsStreaming, {**body, "input": items})
        eq((body["store"], body["stream"]), (False, True), "store, stream")

    def roles(self, body):
        """Reasoning stands before what it led to, or is refused."""
        items = body["input"]
        for item, after in zip(items, [*items[1:], {}]):
            if item["type"] == "reasoning":
                made = after.get("role") == "assistant" or after.get("type", "").endswith("_call")
                assert made or after.get("type") == "reasoning", f"reasoning before {after}"
                assert "reasoning.encrypted_content" in body["include"], body["include"]

    def instructions(self, body):
        return body["instructions"]

    def tools(self, body):
        return [tool.get("name", tool["type"]) for tool in body.get("tools", [])]

    def flow(self, body):
        found = []
        for item in body["input"]:
            # An item does not say in which answer it came.
            answer = "user" if item.get("role") == "user" else "model"
            match item["type"]:
                case "message":
                    role = {"user": "user", "assistant": "model"}[item["role"]]
                    content = item["content"]
                    if isinstance(content, str):
                        content = [{"type": "text", "text": content}]
                    for inner in content:
                        if inner["type"] == "input_image":
                            found.append(part(role, "image", answer, url=inner["image_url"]))
                        else:
                            found.append(part(role, "text", answer, text=inner["text"]))
                case "reasoning":
                    found.append(part("model", "thought", answer,
                                      opaque=item["encrypted_content"], item=item))
                case "function_call":
                    found.append(part("model", "call", answer, id=item["call_id"],
                                      name=item["name"], args=item["arguments"], item=item))
                case "local_shell_call":
                    found.append(part("model", "call", answer, id=item["call_id"],
                                      name="local_shell", args=item["action"], item=item))
                case "function_call_output" | "local_shell_call_output":
                    found.append(part("user", "result", answer, id=item["call_id"], name=None,
                                      text=item["output"]))
                case other:
                    raise AssertionError(f"an item of type {other}")
        return found

    def resend(self, url, body):
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-other", max_retries=0)
        return list(client.responses.create(**body))


class Completions(Api):
    name, model, path, said_in = "chat", "gpt-4.1", "/v1/chat/completions", "messages"
    env = {"PROVIDER": "openai", "OPENAI_WIRE_API": "chat", "OPENAI_API_KEY": "sk-chat-4a5b6c"}
    id_chars_max, at, signed = 64, Responses.at, Responses.signed

    def typed(self, body):
        # Servers that reason have this field beside OpenAI's own.
        said = [{name: value for name, value in one.items() if name != "reasoning_content"}
                for one in body["messages"]]
        known(CompletionCreateParamsStreaming, {**body, "messages": said})
        eq(body["stream_options"], {"include_usage": True}, "stream_options")

    def roles(self, body):
        roles = [one["role"] for one in body["messages"]]
        eq((roles[0], roles.count("system")), ("system", 1), "the system message is the first")
        spoken = [role for role in roles if role != "tool"]
        for before, after in zip(spoken[1:], spoken[2:]):
            twice = before == after == "user"
            assert not twice, f"two messages of a user in a row: {roles}"

    def instructions(self, body):
        return body["messages"][0]["content"]

    def tools(self, body):
        return [tool["function"]["name"] for tool in body.get("tools", [])]

    def line(self, body):
        """Reasoning goes back only until the user speaks again."""
        return [{name: value for name, value in one.items() if name != "reasoning_content"}
                for one in body["messages"]]

    def flow(self, body):
        found = []
        for at, one in enumerate(body["messages"][1:]):
            role = "model" if one["role"] == "assistant" else "user"
            content = one.get("content")
            if one["role"] == "tool":
                found.append(part("user", "result", at, id=one["tool_call_id"], name=None,
                                  text=content))
                continue
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            if "reasoning_content" in one:
                found.append(part(role, "thought", at, opaque=one["reasoning_content"]))
            for inner in content or []:
                if inner["type"] == "image_url":
                    found.append(part(role, "image", at, url=inner["image_url"]["url"]))
                else:
                    found.append(part(role, "text", at, text=inner["text"]))
            for call in one.get("tool_calls", []):
                found.append(part(role, "call", at, id=call["id"], item=call,
                                  name=call["function"]["name"],
                                  args=call["function"]["arguments"]))
        return found

    def resend(self, url, body):
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-other", max_retries=0)
        return list(client.chat.completions.create(**body))


class Anthropic(Api):
    name, model, path, said_in = "anthropic", "claude-sonnet-4-5", "/v1/messages", "messages"
    env = {"PROVIDER": "anthropic", "ANTHROPIC_API_KEY": "sk-ant-7d8e9f"}

    def at(self, url):
        return {"ANTHROPIC_BASE_URL": url}

    def signed(self, headers):
        eq(headers.get("x-api-key"), self.env["ANTHROPIC_API_KEY"], "key")
        assert headers.get("anthropic-version"), headers

    def typed(self, body):
        known(MessageCreateParamsStreaming, body)
        marks = json.dumps(body).count('"cache_control"')
        assert 0 < marks <= BREAKPOINTS_MAX, f"{marks} breakpoints of the cache"
        if body.get("thinking", {}).get("type") == "enabled":
            budget = body["thinking"]["budget_tokens"]
            assert 1024 <= budget < body["max_tokens"], f"budget of {budget}"

    def roles(self, body):
        roles = [one["role"] for one in body["messages"]]
        eq(roles, [("user", "assistant")[at % 2] for at in range(len(roles))], "roles")
        if body.get("thinking", {}).get("type") == "enabled" and len(roles) > 1:
            first, last = body["messages"][-2]["content"][0], body["messages"][-1]["content"][0]
            begun = last["type"] != "tool_result" or first["type"].endswith("thinking")
            assert begun, f"is to think, and has begun without: {first}"
        for one in body["messages"]:
            kinds = [inner["type"] for inner in one["content"]]
            results = kinds.count("tool_result")
            eq(kinds[:results], ["tool_result"] * results, f"results stand first, {kinds}")

    def instructions(self, body):
        return "".join(block["text"] for block in body["system"])

    def tools(self, body):
        return [tool["name"] for tool in body.get("tools", [])]

    def line(self, body):
        """The marks of the cache move; they are no part of what is cached."""
        def bare(block):
            return {name: value for name, value in block.items() if name != "cache_control"}

        return [{**one, "content": [bare(inner) for inner in one["content"]]}
                for one in body["messages"]]

    def flow(self, body):
        found = []
        for at, one in enumerate(body["messages"]):
            role = {"user": "user", "assistant": "model"}[one["role"]]
            for inner in one["content"]:
                match inner["type"]:
                    case "text":
                        found.append(part(role, "text", at, text=inner["text"]))
                    case "image":
                        source = inner["source"]
                        url = f"data:{source['media_type']};base64,{source['data']}"
                        found.append(part(role, "image", at, url=url))
                    case "thinking":
                        found.append(part(role, "thought", at, opaque=inner["signature"],
                                          item=inner))
                    case "redacted_thinking":
                        found.append(part(role, "thought", at, opaque=inner["data"], item=inner))
                    case "tool_use":
                        assert ANTHROPIC_ID.fullmatch(inner["id"]), f"id of {inner}"
                        found.append(part(role, "call", at, id=inner["id"], name=inner["name"],
                                          args=inner["input"], item=inner))
                    case "tool_result":
                        found.append(part(role, "result", at, id=inner["tool_use_id"], name=None,
                                          text=inner["content"],
                                          error=inner.get("is_error", False)))
                    case other:
                        raise AssertionError(f"a block of type {other}")
        return found

    def resend(self, url, body):
        client = anthropic.Anthropic(base_url=url, api_key="sk-other", max_retries=0)
        return list(client.messages.create(**body))


class Gemini(Api):
    name, model, said_in = "google", "gemini-2.5-pro", "contents"
    path = f"/v1beta/models/{model}:streamGenerateContent?alt=sse"
    env = {"PROVIDER": "google", "GOOGLE_API_KEY": "AIza-0a1b2c3d4e"}

    def at(self, url):
        return {"GOOGLE_BASE_URL": url}

    def signed(self, headers):
        eq(headers.get("x-goog-api-key"), self.env["GOOGLE_API_KEY"], "key")

    def typed(self, body):
        """Its SDK has a type for each field, but none for a request."""
        kinds = {"contents": list[types.Content], "systemInstruction": types.Content,
                 "tools": list[types.Tool], "generationConfig": types.GenerationConfig}
        assert body.keys() <= kinds.keys(), f"a field that no SDK knows: {[*body]}"
        try:
            return {name: validator(kinds[name]).validate_json(json.dumps([value]))
                    for name, value in body.items()}
        except ValidationError as error:
            raise AssertionError(f"the SDK does not know this: {told(error)}") from None

    def same(self, one, other):
        """The SDK spells some names and all bytes in another of the ways that may be."""
        return self.typed(one) == self.typed(other)

    def roles(self, body):
        """A user begins; results stand alone, and as many as there were calls."""
        before = {"role": "model", "parts": []}
        for one in body["contents"]:
            calls = [inner for inner in before["parts"] if "functionCall" in inner]
            results = [inner for inner in one["parts"] if "functionResponse" in inner]
            eq(len(results), len(calls), f"results behind {before}")
            assert not results or len(results) == len(one["parts"]), f"results and more: {one}"
            turn = (before["role"], one["role"]) != ("model", "model")
            assert turn, f"the model twice in a row: {one}"
            before = one
        eq(body["contents"][0]["role"], "user", "who begins")

    def instructions(self, body):
        return "".join(inner["text"] for inner in body["systemInstruction"]["parts"])

    def tools(self, body):
        return [one["name"] for tool in body.get("tools", [])
                for one in tool["functionDeclarations"]]

    def flow(self, body):
        found = []
        for at, one in enumerate(body["contents"]):
            role = one["role"]
            for inner in one["parts"]:
                signature = inner.get("thoughtSignature")
                if call := inner.get("functionCall"):
                    found.append(part(role, "call", at, id=call.get("id"), name=call["name"],
                                      args=call["args"], opaque=signature, item=inner))
                elif result := inner.get("functionResponse"):
                    ((outcome, text),) = result["response"].items()
                    found.append(part(role, "result", at, id=result.get("id"), text=text,
                                      name=result["name"], error=outcome == "error"))
                elif blob := inner.get("inlineData"):
                    url = f"data:{blob['mimeType']};base64,{blob['data']}"
                    found.append(part(role, "image", at, url=url))
                elif inner.get("thought") or (signature and not inner["text"]):
                    found.append(part(role, "thought", at, opaque=signature, item=inner))
                else:
                    found.append(part(role, "text", at, text=inner["text"], opaque=signature))
        return found

    def resend(self, url, body):
        client = genai.Client(api_key="other", http_options={"base_url": url})
        config = {**body["generationConfig"], "systemInstruction": body["systemInstruction"],
                  "tools": body["tools"]}
        config = types.GenerateContentConfig.model_validate_json(json.dumps(config))
        (contents,) = self.typed(body)["contents"]
        stream = client.models.generate_content_stream(
            model=self.model, contents=contents, config=config)
        return list(stream)


APIS = [Responses(), Completions(), Anthropic(), Gemini()]
RESPONSES, COMPLETIONS, ANTHROPIC, GEMINI = APIS
