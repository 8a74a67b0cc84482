"""From a place inside a text of a rules file to the place in the file.

Guarantee: for a literal block (`|`), and for plain and quoted texts on one line, the line and column are
those of the very character. For folded and multi-line texts, where YAML moves characters around, it is
the start of the value.
"""

from collections.abc import Callable

from rules.documents.load.yaml_tree import YamlNode

Width = Callable[[str, int], int]

_LONG_ESCAPES = {"x": 4, "u": 6, "U": 10}


def place_in_file(lines: list[str], node: YamlNode, line: int, column: int) -> tuple[int, int]:
    """All from 1: `line` and `column` inside the node's text, and the result inside the file."""
    start = (node.line + 1, node.column + 1)
    text = str(node.value)
    if node.style == "|":
        return _in_literal_block(lines, node, text, line, column) or start
    if node.end_line != node.line:
        return start
    offset = sum(len(earlier) + 1 for earlier in text.split("\n")[: line - 1]) + column - 1
    if node.style == '"':
        return start[0], _after_escapes(lines[node.line], node.column + 1, offset, _double_quoted) + 1
    if node.style == "'":
        return start[0], _after_escapes(lines[node.line], node.column + 1, offset, _single_quoted) + 1
    return start[0], start[1] + offset


def _in_literal_block(
    lines: list[str], node: YamlNode, text: str, line: int, column: int
) -> tuple[int, int] | None:
    for number, content in enumerate(text.split("\n"), start=1):
        place = node.line + number
        if content.strip() and place < len(lines):
            # A literal block keeps each line to its end, so what precedes the content is the indent.
            indent = len(lines[place]) - len(content)
            return node.line + line + 1, indent + column
    return None


def _after_escapes(source: str, place: int, offset: int, width: Width) -> int:
    for _ in range(offset):
        place += width(source, place)
    return place


def _double_quoted(source: str, place: int) -> int:
    if source[place : place + 1] != "\\":
        return 1
    return _LONG_ESCAPES.get(source[place + 1 : place + 2], 2)


def _single_quoted(source: str, place: int) -> int:
    return 2 if source[place : place + 2] == "''" else 1
