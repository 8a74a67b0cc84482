import pytest

from rules.language.cel import event_environment
from rules.language.cel.checked_ast import (
    CALL,
    COMPREHENSION,
    CONST,
    IDENT,
    LIST,
    STRUCT,
    AstNode,
    decode,
    walk,
)


def tree_of(text: str, *, is_checked: bool = True) -> AstNode:
    return decode(event_environment().compile(text, disable_check=not is_checked).serialize()).root


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_call_has_its_function_and_its_operands(is_checked: bool) -> None:
    root = tree_of('schedule == "ü"', is_checked=is_checked)
    assert (root.kind, root.name) == (CALL, "_==_")
    assert [(child.kind, child.name, child.value) for child in root.children] == [
        (IDENT, "schedule", None),
        (CONST, "", "ü"),
    ]


def test_constants_keep_their_values() -> None:
    root = tree_of('[1, -9223372036854775808, 1.5, true, false, "", b"x", 2u].size() == 0')
    constants = root.children[0].children[0]
    assert constants.kind == LIST
    assert [child.value for child in constants.children][:6] == [1, -(2**63), 1.5, True, False, ""]
    assert [child.kind == CONST for child in constants.children][6:] == [False, False]


def test_macros_name_what_they_bind() -> None:
    root = tree_of('payload.l.exists(x, x == "a")')
    assert root.kind == COMPREHENSION
    assert root.bound[0] == "x"
    assert root.iter_range is not None
    assert root.iter_range.name == "l"
    assert "a" in [node.value for node in walk(root)]


def test_literals_inside_maps_are_seen() -> None:
    root = tree_of('{"k": "v"}.k == "v"')
    assert STRUCT in [node.kind for node in walk(root)]
    assert [node.value for node in walk(root) if node.kind == CONST] == ["k", "v", "v"]


def test_offsets_count_characters() -> None:
    tree = decode(event_environment().compile('owner == "ü𝄞" && owner == "x"').serialize())
    last = next(node for node in walk(tree.root) if node.value == "x")
    assert tree.offsets[last.id] == 26


def test_a_literal_of_many_bytes_is_decoded() -> None:
    text = "x" * 1500
    assert text in [node.value for node in walk(tree_of(f'owner == "{text}"'))]


def test_the_nodes_whose_type_is_unknown_are_marked() -> None:
    tree = decode(event_environment().compile("payload.a == 1 && seq == 1").serialize())
    assert [node.name for node in walk(tree.root) if node.id in tree.dynamic] == ["a"]
