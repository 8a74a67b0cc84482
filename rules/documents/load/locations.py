"""Converts a position inside a text of a rule file to the position in the file.

Guarantee: for a literal block (`|`), and for plain and quoted texts on one line, the result is the
exact character. For folded and multi-line texts, whose characters YAML moves, it is the start of
the value.
"""

from collections.abc import Callable

from rules.documents.load.yaml_tree import YamlNode

Width = Callable[[str, int], int]

_LONG_ESCAPES = {"x": 4, "u": 6, "U": 10}


def position_in_file(lines: list[str], node: YamlNode, line: int, column: int) -> tuple[int, int]:
    """`line` and `column` are inside the text of the node, the result is inside the file.

    All count from 1.
    """
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
        index = node.line + number
        if content.strip() and index < len(lines):
            # A literal block keeps each line to its end, so everything before the content is the
            # indent.
            indent = len(lines[index]) - len(content)
            return node.line + line + 1, indent + column
    return None


def _after_escapes(source: str, index: int, offset: int, width: Width) -> int:
    for _ in range(offset):
        index += width(source, index)
    return index


def _double_quoted(source: str, index: int) -> int:
    if source[index : index + 1] != "\\":
        return 1
    return _LONG_ESCAPES.get(source[index + 1 : index + 2], 2)


def _single_quoted(source: str, index: int) -> int:
    return 2 if source[index : index + 2] == "''" else 1
