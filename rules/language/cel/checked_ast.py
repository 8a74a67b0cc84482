"""The syntax tree of a compiled condition, read from the engine's own serialised form.

Guarantee: `decode` returns the tree that the engine evaluates, with the position of every node in
the text and, if the condition was type-checked, its type. A node that the decoder does not know is
kept as `OTHER`, so an analysis can miss a node but not misread one.

Why a decoder of our own: the engine offers no access to the tree, and its serialised form is
protobuf with a handful of field numbers that the CEL specification fixes. Decoding takes about 0.1
ms per rule and needs no dependency.

On failure: bytes that are not the expected message raise `ValueError`: a defect, or another version
of the engine.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

CONST, IDENT, SELECT, CALL, LIST, STRUCT, COMPREHENSION, OTHER = range(8)
_KIND_BY_FIELD = {3: CONST, 4: IDENT, 5: SELECT, 6: CALL, 7: LIST, 8: STRUCT, 9: COMPREHENSION}
_DYN_FIELD = 1
_PRIMITIVE_FIELD = 3
_INT64 = 2

Fields = list[tuple[int, "int | bytes"]]


@dataclass(slots=True)
class AstNode:
    """One expression. `name` is the identifier, the selected field, or the function called."""

    id: int
    kind: int
    name: str = ""
    value: object = None
    children: list["AstNode"] = field(default_factory=list)
    iter_range: "AstNode | None" = None
    bound: tuple[str, ...] = ()


class Tree:
    """A decoded condition. `offsets` and `dynamic` are decoded on demand: most conditions have no
    mistake."""

    def __init__(self, root: AstNode, source: bytes, types: list[bytes]) -> None:
        self.root = root
        self._source = source
        self._types = types

    @cached_property
    def offsets(self) -> dict[int, int]:
        """AstNode id to its offset in the text, in characters."""
        pairs = (_first(_fields(raw)) for number, raw in _fields(self._source) if number == 4)
        return {_whole(pair.get(1, 0)): _whole(pair.get(2, 0)) for pair in pairs}

    @cached_property
    def dynamic(self) -> frozenset[int]:
        """Ids of nodes whose type is only known at run time."""
        types = (_entry(raw) for raw in self._types)
        return frozenset(key for key, raw in types if any(n == _DYN_FIELD for n, _ in _fields(raw)))

    @cached_property
    def integers(self) -> frozenset[int]:
        """Ids of nodes that are whole numbers."""
        types = (_entry(raw) for raw in self._types)
        return frozenset(key for key, raw in types if (_PRIMITIVE_FIELD, _INT64) in _fields(raw))


def decode(serialised: bytes) -> Tree:
    envelope = _first(_fields(serialised))
    is_checked = bytes(envelope[1]).endswith(b"CheckedExpr")
    message = _fields(envelope[2])
    expression, source = (4, 5) if is_checked else (2, 3)
    parts = _first(message)
    types = [bytes(raw) for number, raw in message if is_checked and number == 3]
    return Tree(_node(parts[expression]), bytes(parts[source]), types)


def walk(node: AstNode) -> Iterator[AstNode]:
    yield node
    if node.iter_range is not None:
        yield from walk(node.iter_range)
    for child in node.children:
        yield from walk(child)


def _node(raw: "int | bytes") -> AstNode:
    fields = _fields(raw)
    identity = next((_whole(value) for number, value in fields if number == 2), 0)
    for number, value in fields:
        kind = _KIND_BY_FIELD.get(number)
        if kind is not None:
            return _READERS[kind](identity, _fields(value))
    return AstNode(identity, OTHER)


def _constant(identity: int, fields: Fields) -> AstNode:
    for number, value in fields:
        if number == 6:
            return AstNode(identity, CONST, value=bytes(value).decode("utf-8"))
        if number == 5:
            return AstNode(identity, CONST, value=_double(value))
        if number == 3:
            return AstNode(identity, CONST, value=_signed(_whole(value)))
        if number == 2:
            return AstNode(identity, CONST, value=bool(value))
    return AstNode(identity, OTHER)


def _identifier(identity: int, fields: Fields) -> AstNode:
    return AstNode(identity, IDENT, name=_text(fields, 1))


def _select(identity: int, fields: Fields) -> AstNode:
    return AstNode(identity, SELECT, name=_text(fields, 2), children=_nodes(fields, 1))


def _call(identity: int, fields: Fields) -> AstNode:
    return AstNode(identity, CALL, name=_text(fields, 2), children=_nodes(fields, 1) + _nodes(fields, 3))


def _list(identity: int, fields: Fields) -> AstNode:
    return AstNode(identity, LIST, children=_nodes(fields, 1))


def _struct(identity: int, fields: Fields) -> AstNode:
    entries = [_fields(value) for number, value in fields if number == 2]
    return AstNode(identity, STRUCT, children=[node for entry in entries for node in _nodes(entry, 3, 4)])


def _comprehension(identity: int, fields: Fields) -> AstNode:
    return AstNode(
        identity,
        COMPREHENSION,
        children=_nodes(fields, 4, 5, 6, 7),
        iter_range=next(iter(_nodes(fields, 2)), None),
        bound=(_text(fields, 1), _text(fields, 3), _text(fields, 8)),
    )


_READERS = {
    CONST: _constant,
    IDENT: _identifier,
    SELECT: _select,
    CALL: _call,
    LIST: _list,
    STRUCT: _struct,
    COMPREHENSION: _comprehension,
}


def _nodes(fields: Fields, *numbers: int) -> list[AstNode]:
    return [_node(value) for number, value in fields if number in numbers]


def _text(fields: Fields, wanted: int) -> str:
    return next((bytes(value).decode("utf-8") for n, value in fields if n == wanted and value), "")


def _first(fields: Fields) -> dict[int, "int | bytes"]:
    return dict(reversed(fields))


def _entry(raw: "int | bytes") -> tuple[int, "int | bytes"]:
    pair = _first(_fields(raw))
    return _whole(pair.get(1, 0)), pair.get(2, b"")


def _fields(raw: "int | bytes") -> Fields:
    """The fields of one protobuf message in order, as (number, varint or bytes)."""
    if isinstance(raw, int):
        raise ValueError("expected a message, found a number")
    fields: Fields = []
    position, end = 0, len(raw)
    while position < end:
        key, position = _varint(raw, position) if raw[position] > 127 else (raw[position], position + 1)
        wire = key & 7
        if wire == 2:
            length, position = (
                _varint(raw, position) if raw[position] > 127 else (raw[position], position + 1)
            )
        elif wire == 0:
            value, position = _varint(raw, position) if raw[position] > 127 else (raw[position], position + 1)
            fields.append((key >> 3, value))
            continue
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown wire type {wire}")
        fields.append((key >> 3, raw[position : position + length]))
        position += length
    return fields


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    byte = raw[position]
    if byte < 128:
        return byte, position + 1
    value, shift = byte & 127, 7
    while True:
        position += 1
        byte = raw[position]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position + 1
        shift += 7


def _whole(value: "int | bytes") -> int:
    if not isinstance(value, int):
        raise ValueError("expected a number, found a message")
    return value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _double(value: "int | bytes") -> float:
    if isinstance(value, int):
        raise ValueError("expected eight bytes, found a number")
    return float(struct.unpack("<d", value)[0])
