"""Reads the YAML of rule files: plain data, and the position of every key and value.

Guarantee: text and numbers are what they look like. Only `true` and `false` are booleans, so `on`
stays a text; `09:30` and `2026-01-01` stay texts; there are no tags and no merge keys. Duplicate
keys, keys that are not text, an alias inside its own anchor, aliases that multiply, nesting beyond
64 and characters that cannot be stored are errors with their position. The time is linear in the
length of the file.

Why events and not PyYAML's nodes: PyYAML composes nodes by recursion in C, and a file of 100,000
brackets ends the process. Here the depth is the length of a list, and limited.

On failure: `YamlInvalid`, with one problem: the text after a syntax error cannot be trusted.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_DEPTH = 64
MAX_ALIASED_NODES = 20_000
MAX_DIGITS = 19

INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]|(?!^)\ufeff")

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

Path = tuple[str | int, ...]


class YamlInvalid(Exception):
    def __init__(self, line: int, column: int, message: str) -> None:
        self.line, self.column, self.message = line, column, message
        super().__init__(message)


@dataclass(slots=True)
class YamlNode:
    """A value and its position; lines and columns count from 0, as in PyYAML."""

    line: int
    column: int
    value: object = None
    style: str | None = None
    end_line: int = 0
    size: int = 1
    members: dict[str | int, "YamlNode"] = field(default_factory=dict)
    keys: dict[str, "YamlNode"] = field(default_factory=dict)

    def at(self, path: Path) -> "YamlNode":
        """The node at the path, or the deepest one on the way to it."""
        node = self
        for step in path:
            if step not in node.members:
                break
            node = node.members[step]
        return node

    def key_at(self, path: Path) -> "YamlNode":
        """The key at the end of the path, or the node of `at` if there is none."""
        parent = self.at(path[:-1])
        last = path[-1] if path else None
        return parent.keys.get(last, self.at(path)) if isinstance(last, str) else self.at(path)


@dataclass(slots=True)
class _OpenCollection:
    """A list or mapping whose end has not been read yet."""

    node: YamlNode
    is_mapping: bool
    key: YamlNode | None = None


def split_lines(text: str) -> list[str]:
    """Lines as YAML counts them: it also breaks lines at other characters than a newline."""
    return _LINE_BREAK.split(text)


def read_documents(text: str) -> Iterator[YamlNode]:
    """The documents of a file; an empty one is a node whose value is None."""
    unprintable = _CONTROL.search(text)
    if unprintable:
        before = split_lines(text[: unprintable.start()])
        message = f"the character U+{ord(unprintable.group()):04X} is not allowed in a rule file, remove it"
        raise YamlInvalid(len(before), len(before[-1]) + 1, message)
    try:
        yield from _Reader(text).documents()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise YamlInvalid(line, column, f"not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlInvalid(1, 1, f"not valid YAML: {str(error).splitlines()[0]}") from None


class _Reader:
    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, YamlNode] = {}
        self._aliased_nodes = 0

    def documents(self) -> Iterator[YamlNode]:
        root: YamlNode | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
            elif isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
                node = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else self._alias(event)
                root = self._attach(node) or root
            elif isinstance(event, yaml.CollectionStartEvent):
                self._start(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                root = self._attach(self._open.pop().node) or root
            elif isinstance(event, yaml.DocumentEndEvent) and root is not None:
                yield root

    def _start(self, event: Any) -> None:
        _check_tag(event)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        node = _node(event, {} if is_mapping else [])
        if len(self._open) >= MAX_DEPTH:
            raise _invalid(node, f"nested more than {MAX_DEPTH} deep, flatten it")
        if self._open and self._open[-1].is_mapping and self._open[-1].key is None:
            raise _invalid(node, "a key must be text, not a list or a mapping")
        self._anchor(event, node)
        self._open.append(_OpenCollection(node, is_mapping))

    def _anchor(self, event: Any, node: YamlNode) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _scalar(self, event: Any) -> YamlNode:
        _check_tag(event)
        node = _node(event, event.value)
        node.style, node.end_line = event.style, event.end_mark.line
        if _UNSTORABLE.search(event.value):
            raise _invalid(node, "the text holds NUL or a lone surrogate, which cannot be stored, remove it")
        is_key = bool(self._open) and self._open[-1].is_mapping and self._open[-1].key is None
        if event.implicit[0]:
            node.value = _resolve(event.value, node)
        if is_key and not isinstance(node.value, str):
            raise _invalid(node, f"the key {event.value or 'null'} must be text, put it in quotes")
        self._anchor(event, node)
        return node

    def _alias(self, event: Any) -> YamlNode:
        position = _node(event, None)
        node = self._anchors.get(event.anchor)
        if node is None:
            raise _invalid(
                position, f"unknown alias '*{event.anchor}', define it before with '&{event.anchor}'"
            )
        if any(collection.node is node for collection in self._open):
            raise _invalid(position, f"the alias '*{event.anchor}' is inside its own anchor")
        self._aliased_nodes += node.size
        if self._aliased_nodes > MAX_ALIASED_NODES:
            raise _invalid(position, f"aliases repeat more than {MAX_ALIASED_NODES} values, write them out")
        if self._open and self._open[-1].is_mapping and self._open[-1].key is None:
            raise _invalid(position, "a key must be text, not an alias")
        return node

    def _attach(self, node: YamlNode) -> YamlNode | None:
        """Attach a finished value to its parent; returns it if it is a whole document."""
        if not self._open:
            return node
        parent = self._open[-1]
        if not parent.is_mapping:
            items: Any = parent.node.value
            parent.node.members[len(items)] = node
            items.append(node.value)
        elif parent.key is None:
            self._check_key(parent.node, node)
            parent.key = node
            return None
        else:
            key = str(parent.key.value)
            mapping: Any = parent.node.value
            mapping[key] = node.value
            parent.node.members[key] = node
            parent.node.keys[key] = parent.key
            parent.key = None
        parent.node.size += node.size
        return None

    def _check_key(self, mapping: YamlNode, key: YamlNode) -> None:
        name = str(key.value)
        if name == "<<":
            raise _invalid(
                key, "merge keys are not supported, use a 'defaults' document or write the keys out"
            )
        first = mapping.keys.get(name)
        if first is not None:
            raise _invalid(key, f"duplicate key '{name}' (first at line {first.line + 1})")


def _node(event: Any, value: object) -> YamlNode:
    return YamlNode(event.start_mark.line, event.start_mark.column, value, end_line=event.end_mark.line)


def _invalid(node: YamlNode, message: str) -> YamlInvalid:
    return YamlInvalid(node.line + 1, node.column + 1, message)


def _check_tag(event: Any) -> None:
    if event.tag is not None:
        short = event.tag.replace("tag:yaml.org,2002:", "!!")
        raise _invalid(_node(event, None), f"the tag '{short}' is not supported, remove it")


def _resolve(text: str, node: YamlNode) -> object:
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if INT.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise _invalid(node, "the number is too long, put it in quotes")
        return int(text)
    if FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise _invalid(node, f"the number {text[:40]} is too large, put it in quotes")
        return number
    return text
