"""Positions inside a text of a document are converted to positions in the file."""

from __future__ import annotations

import pytest

from rules.documents.load import RulesInvalid, load_text

RULE = """# a comment
action: {name: a, log: {message: hello}}
---
action_rule:
  name: r
  on: event
  action: a
"""


def position_of_the_error(when: str, *, newline: str = "\n") -> tuple[int, int]:
    with pytest.raises(RulesInvalid) as refused:
        load_text((RULE + when).replace("\n", newline))
    (problem,) = refused.value.problems
    assert "undeclared reference to 'orgin'" in problem.message
    return problem.line, problem.column


def position_in_text(when: str) -> tuple[int, int]:
    """The position of `orgin` in the file."""
    lines = (RULE + when).split("\n")
    return next((number, line.index("orgin") + 1) for number, line in enumerate(lines, 1) if "orgin" in line)


@pytest.mark.parametrize(
    "when",
    [
        "  when: orgin == owner\n",
        "  when:   seq == 1 && orgin == owner  # comment\n",
        "  when: 'orgin == \"x\"'\n",
        "  when: 'owner == ''its'' && orgin == \"x\"'\n",
        '  when: "owner == \\"ü\\" && orgin == owner"\n',
        "  when: \"owner == '\\u00fc\\x41\\U0001D11E' && orgin == owner\"\n",
        '  when: "seq == 1 &&\\n  orgin == owner"\n',
        "  when: |\n    orgin == owner\n",
        "  when: |\n    seq == 1 &&\n      orgin == owner &&\n      seq == 2\n",
        "  when: |-\n\n\n        seq == 1 &&\n          orgin == owner\n",
        "  when: |2 # indicator\n      seq == 1 &&\n     orgin == owner\n",
        "  when: 'owner == \"ü𝄞\" && orgin == owner'\n",
        "  ? when\n  : orgin == owner\n",
    ],
)
def test_an_error_in_a_condition_points_at_the_exact_character(when: str) -> None:
    assert position_of_the_error(when) == position_in_text(when)


@pytest.mark.parametrize(
    "when",
    [
        "  when: >\n    seq == 1 &&\n    orgin == owner\n",
        "  when: seq == 1 &&\n    orgin == owner\n",
        "  when: 'seq == 1 &&\n    orgin == owner'\n",
    ],
)
def test_an_error_in_a_folded_condition_points_at_the_start_of_the_value(when: str) -> None:
    assert position_of_the_error(when) == (8, 9)


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_line_endings_do_not_change_the_position(newline: str) -> None:
    when = "  when: |\n    seq == 1 &&\n      orgin == owner\n"
    assert position_of_the_error(when, newline=newline) == position_in_text(when)


def test_an_unusual_line_separator_in_a_comment_does_not_change_the_position() -> None:
    when = "  # a\u2028  when: orgin == owner\n"
    assert position_of_the_error(when) == (9, 9)
