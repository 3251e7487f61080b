"""Says whether a value of parsed JSON has a shape.

A shape is a function that yields what is wrong, each as "path: complaint". Fields that a shape
does not name are never looked at: every document lets clients ignore unknown fields.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Shape = Callable[[Any, str], Iterator[str]]

# What decisions.md section 2 lets a session be called.
SESSION_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,128}")
SHOWN_CHARS_MAX = 80


def shown(value: object) -> str:
    """A value as it stands in a problem, not too long."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "..."


def rule(accepts: Callable[[Any], bool], wanted: str) -> Shape:
    """A shape of one test."""

    def shape(value: Any, path: str) -> Iterator[str]:
        if not accepts(value):
            yield f"{path}: {shown(value)} is not {wanted}"

    return shape


def is_int(value: object) -> bool:
    # JSON's true is no number, though Python's is.
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    return is_int(value) or isinstance(value, float)


anything: Shape = rule(lambda value: True, "anything")
present: Shape = rule(lambda value: value is not None, "a value other than null")
text: Shape = rule(lambda value: isinstance(value, str), "a string")
words: Shape = rule(lambda value: isinstance(value, str) and value != "", "a non-empty string")
flag: Shape = rule(lambda value: isinstance(value, bool), "a boolean")
integer: Shape = rule(is_int, "an integer")
count: Shape = rule(lambda value: is_int(value) and value >= 0, "an integer >= 0")
positive: Shape = rule(lambda value: is_int(value) and value > 0, "an integer > 0")
number: Shape = rule(is_number, "a number")
amount: Shape = rule(lambda value: is_number(value) and value >= 0, "a number >= 0")
anobject: Shape = rule(lambda value: isinstance(value, dict), "an object")
session_id: Shape = rule(
    lambda value: isinstance(value, str) and SESSION_ID.fullmatch(value) is not None,
    "a session id",
)


def one_of(*allowed: str) -> Shape:
    return rule(lambda value: value in allowed, "one of " + ", ".join(allowed))


def matching(pattern: str, wanted: str) -> Shape:
    form = re.compile(pattern)
    return rule(lambda value: isinstance(value, str) and bool(form.fullmatch(value)), wanted)


def nullable(shape: Shape) -> Shape:
    def inner(value: Any, path: str) -> Iterator[str]:
        if value is not None:
            yield from shape(value, path)

    return inner


def either(*shapes: Shape) -> Shape:
    """The complaints are those of the last."""

    def inner(value: Any, path: str) -> Iterator[str]:
        wrong: list[str] = []
        for shape in shapes:
            wrong = list(shape(value, path))
            if not wrong:
                return
        yield from wrong

    return inner


def list_of(shape: Shape, least: int = 0) -> Shape:
    def inner(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield f"{path}: {shown(value)} is not a list"
            return
        if len(value) < least:
            yield f"{path}: has {len(value)} elements, needs at least {least}"
        for at, element in enumerate(value):
            yield from shape(element, f"{path}[{at}]")

    return inner


def obj(
    needed: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None, *also: Shape
) -> Shape:
    """An object; `also` looks at it as a whole once its fields are right."""

    def inner(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{path}: {shown(value)} is not an object"
            return
        wrong = []
        for name, shape in needed.items():
            if name in value:
                wrong += shape(value[name], f"{path}.{name}")
            else:
                wrong.append(f"{path}.{name}: is missing")
        for name, shape in (optional or {}).items():
            if name in value:
                wrong += shape(value[name], f"{path}.{name}")
        if not wrong:
            for shape in also:
                wrong += shape(value, path)
        yield from wrong

    return inner


def json_text(shape: Shape) -> Shape:
    """A string that holds JSON of a shape."""

    def inner(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"{path}: {shown(value)} is not a string"
            return
        try:
            parsed = json.loads(value)
        except ValueError as error:
            yield f"{path}: is not JSON in a string ({error})"
            return
        yield from shape(parsed, f"{path}(parsed)")

    return inner
