"""The messages of the chat dialect.

On their own, because a silent viewer of bare `/ws` is sent them before its dialect is known.
"""

from .shapes import Shape, anything, flag, json_text, obj, rule, text, words

# Only what every notion of white space agrees on.
BLANKS = " \t\r\n"

trimmed: Shape = rule(
    lambda value: isinstance(value, str) and value != "" and value == value.strip(BLANKS),
    "a trimmed, non-empty string",
)

MESSAGES: dict[str, Shape] = {
    "user_message": obj({"message": trimmed}),
    "agent_message": obj({"message": text}),
    "tool_call": obj({"tool_name": words, "tool_args": json_text(anything)}),
    "tool_result": obj({"tool_name": words, "result": text, "success": flag}),
    "agent_thinking": obj({"reasoning": text}),
    "error": obj({"error": words}),
}
