"""YAML of rule files: plain values with positions, and errors for everything ambiguous or hostile."""

from __future__ import annotations

import pytest

from rules.documents.load.yaml_tree import YamlInvalid, YamlNode, read_documents


def read(text: str) -> list[object]:
    return [node.value for node in read_documents(text)]


def only(text: str) -> YamlNode:
    (node,) = read_documents(text)
    return node


def refused(text: str) -> tuple[int, int, str]:
    with pytest.raises(YamlInvalid) as raised:
        list(read_documents(text))
    return raised.value.line, raised.value.column, raised.value.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: off", {"on": "off"}),
        ("yes: no", {"yes": "no"}),
        ("a: true\nb: false", {"a": True, "b": False}),
        ("a: True\nb: FALSE", {"a": "True", "b": "FALSE"}),
        ("a: 09:30", {"a": "09:30"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 2026-01-01T00:00:00Z", {"a": "2026-01-01T00:00:00Z"}),
        ("a: 007", {"a": "007"}),
        ("a: 0o17", {"a": "0o17"}),
        ("a: 0x1F", {"a": "0x1F"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: .inf", {"a": ".inf"}),
        ("a: .nan", {"a": ".nan"}),
        ("a: -5", {"a": -5}),
        ("a: 0", {"a": 0}),
        ("a: 1.5", {"a": 1.5}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: '5'", {"a": "5"}),
        ('a: "true"', {"a": "true"}),
        ("a: ~\nb: null\nc:", {"a": None, "b": None, "c": None}),
        ("a: ''", {"a": ""}),
        ("a: =", {"a": "="}),
        ("'1': a", {"1": "a"}),
        ("a: [1, {b: [x]}]", {"a": [1, {"b": ["x"]}]}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x\nb: *x", {"a": None, "b": None}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_values_mean_what_they_look_like(text: str, value: object) -> None:
    assert read(text) == [value]


def test_a_file_may_contain_several_documents() -> None:
    assert read("a: 1\n---\nb: 2\n---\n") == [{"a": 1}, {"b": 2}, None]
    assert read("# nothing\n") == []


def test_an_anchor_does_not_reach_into_the_next_document() -> None:
    assert refused("a: &x 1\n---\nb: *x") == (3, 4, "unknown alias '*x', define it before with '&x'")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", (3, 1, "duplicate key 'a' (first at line 1)")),
        ("x:\n  - {a: 1, 'a': 2}", (2, 12, "duplicate key 'a' (first at line 2)")),
        ("1: a", (1, 1, "the key 1 must be text, put it in quotes")),
        ("true: a", (1, 1, "the key true must be text, put it in quotes")),
        ("~: a", (1, 1, "the key ~ must be text, put it in quotes")),
        ("{? : a}", (1, 4, "the key null must be text, put it in quotes")),
        ("? [a]\n: b", (1, 3, "a key must be text, not a list or a mapping")),
        ("a: &x b\n? *x\n: c", (2, 3, "a key must be text, not an alias")),
        (
            "a: &x {b: 1}\nc:\n  <<: *x",
            (3, 3, "merge keys are not supported, use a 'defaults' document or write the keys out"),
        ),
        ("a: &x [*x]", (1, 8, "the alias '*x' is inside its own anchor")),
        ("a: &x\n  b: {c: *x}", (2, 10, "the alias '*x' is inside its own anchor")),
        (
            "a: !!python/object:os.system x",
            (1, 4, "the tag '!!python/object:os.system' is not supported, remove it"),
        ),
        ("a: !!str 5", (1, 4, "the tag '!!str' is not supported, remove it")),
        ("a: !x [1]", (1, 4, "the tag '!x' is not supported, remove it")),
        ('a: "x\\0y"', (1, 4, "the text holds NUL or a lone surrogate, which cannot be stored, remove it")),
        ("a: x\0y", (1, 5, "the character U+0000 is not allowed in a rule file, remove it")),
        ("a: 1\nbé: \x07", (2, 5, "the character U+0007 is not allowed in a rule file, remove it")),
        ("a: 12345678901234567890", (1, 4, "the number is too long, put it in quotes")),
        ("a: " + "9" * 5000, (1, 4, "the number is too long, put it in quotes")),
        ("a: 1e999", (1, 4, "the number 1e999 is too large, put it in quotes")),
        ("a: [1", (2, 1, "not valid YAML: did not find expected ',' or ']'")),
        ("a: b: c", (1, 5, "not valid YAML: mapping values are not allowed in this context")),
        ("\ta: 1", (1, 1, "not valid YAML: found character that cannot start any token")),
        ("%YAML 9.9\n---\na: 1", (1, 1, "not valid YAML: found incompatible YAML document")),
    ],
)
def test_ambiguous_and_hostile_texts_are_rejected_with_their_position(
    text: str, problem: tuple[int, int, str]
) -> None:
    assert refused(text) == problem


def test_a_lone_surrogate_written_as_an_escape_is_rejected() -> None:
    assert refused('a: "\\ud800"') == (1, 7, "not valid YAML: found invalid Unicode character escape code")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_rejected_instead_of_ending_the_process(opening: str) -> None:
    line, _, message = refused(opening * 200_000)
    assert line == 1
    assert message in ("nested more than 64 deep, flatten it", "a key must be text, not a list or a mapping")


def test_nesting_is_accepted_to_the_limit() -> None:
    assert read("[" * 64 + "]" * 64)
    assert refused("[" * 65 + "]" * 65)[2] == "nested more than 64 deep, flatten it"


def test_aliases_that_multiply_are_rejected() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    line, _, message = refused("\n".join(lines))
    assert message == "aliases repeat more than 20000 values, write them out"
    assert line == 5


def test_aliases_that_repeat_little_are_accepted_in_every_document_of_a_file() -> None:
    assert len(read("---\n".join(["a: &x [1, 2]\nb: *x\nc: *x\n"] * 100))) == 100


def test_many_small_bombs_in_one_file_count_together() -> None:
    bomb = "a: &x [" + "1, " * 99 + "1]\nb: [" + "*x, " * 49 + "*x]\n"
    assert read(bomb)
    assert refused("---\n".join([bomb] * 10))[2] == "aliases repeat more than 20000 values, write them out"


def test_every_key_and_value_has_its_position() -> None:
    node = only("a:\n  b: x\n  ünï: {c: [1, zz]}\n")
    at = node.at(("a", "ünï", "c", 1))
    assert (at.line, at.column, at.value) == (2, 15, "zz")
    key = node.key_at(("a", "ünï", "c"))
    assert (key.line, key.column, key.value) == (2, 8, "c")
    assert node.at(("a", "missing", "deeper")).line == 1
