"""Reads as much YAML as a tool definition may be written in: block mappings and sequences, plain
and quoted scalars, folded and literal texts. Anything else is an error, never a guess."""

import json
import re

NUMBER = re.compile(r"-?\d+(\.\d+)?")
KEY = re.compile(r"([A-Za-z_$][\w$-]*|\"[^\"]*\"):(?: (.*))?")


def load(text):
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    value, end = _block(lines, 0, 0)
    assert end == len(lines), f"not read: {lines[end]!r}"
    return value


def _depth(line):
    return len(line) - len(line.lstrip(" "))


def _block(lines, at, depth):
    """The value that begins at a line with so many blanks, and the line behind it."""
    assert at < len(lines) and _depth(lines[at]) == depth, f"line {at + 1}: indented wrongly"
    if lines[at][depth:].startswith("- ") or lines[at][depth:] == "-":
        return _sequence(lines, at, depth)
    return _mapping(lines, at, depth)


def _mapping(lines, at, depth):
    found = {}
    while at < len(lines) and _depth(lines[at]) == depth and not lines[at][depth:].startswith("- "):
        key = KEY.fullmatch(lines[at][depth:])
        assert key, f"line {at + 1}: no key: {lines[at]!r}"
        name = key[1].strip('"')
        assert name not in found, f"line {at + 1}: {name} twice"
        found[name], at = _value(lines, at, depth, key[2] or "", sequence_at=depth)
    return found, at


def _sequence(lines, at, depth):
    found = []
    while at < len(lines) and _depth(lines[at]) == depth and lines[at][depth:].startswith("- "):
        inner = lines[at][depth + 2:]
        if KEY.fullmatch(inner):
            lines[at] = " " * (depth + 2) + inner
            value, at = _mapping(lines, at, depth + 2)
        else:
            value, at = _value(lines, at, depth, inner, sequence_at=depth + 1)
        found.append(value)
    return found, at


def _value(lines, at, depth, word, sequence_at):
    """What stands behind a key or a dash, on its line or below it."""
    if word in (">-", ">", "|", "|-"):
        return _text(lines, at + 1, depth, word)
    if word:
        return _scalar(word), at + 1
    below = at + 1
    assert below < len(lines), f"line {at + 1}: nothing follows"
    deeper = _depth(lines[below])
    assert deeper >= sequence_at, f"line {at + 1}: nothing follows"
    return _block(lines, below, deeper)


def _text(lines, at, depth, style):
    part = []
    while at < len(lines) and (not lines[at].strip() or _depth(lines[at]) > depth):
        part.append(lines[at])
        at += 1
    indent = min(_depth(line) for line in part if line.strip())
    told = "\n".join(line[indent:] for line in part).rstrip("\n")
    if style.startswith(">"):
        told = re.sub(r"(?<!\n)\n(?!\n)", " ", told)
        told = re.sub(r"\n\n", "\n", told)
    return (told if style.endswith("-") else told + "\n"), at


def _scalar(word):
    if word.startswith('"'):
        return json.loads(word)
    if word.startswith("'"):
        return word[1:-1].replace("''", "'")
    if word in ("true", "false", "null", "~", "[]", "{}"):
        return {"true": True, "false": False, "[]": [], "{}": {}}.get(word)
    if NUMBER.fullmatch(word):
        return float(word) if "." in word else int(word)
    assert word[0] not in "[{&*!|>%@`#" and ": " not in word and " #" not in word, f"no {word!r}"
    return word
