"""Mistakes in calc_rules are reported with their place before anything is applied."""

from __future__ import annotations

import pytest

from rules.documents.load import load_text
from tests.rules.documents.load.problems import problems_of

RULE = "calc_rule: {name: %s, inputs: {a: {%s}}, every: %s, value: %s%s}\n"


def rule(
    name: str = "x", given: str = "key: dsp.load", every: str = "1m", value: str = "a", keys: str = ""
) -> str:
    return "---\n" + RULE % (name, given, every, value, keys)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (rule(value="b"), "undeclared reference to 'b'"),
        (rule(value="'\"text\"'"), "must be a number or true or false"),
        (rule(value="'1.0'"), "does not read the input 'a'"),
        (rule(value="a * 2"), "write 2.0"),
        (rule(given="key: dsp.load, where: 'labels.'"), "where"),
        (rule(given="key: calc.other"), "unknown calc_rule 'other'"),
        (rule(given="key: calc.x"), "break the circle"),
        (rule("x", "key: calc.y") + rule("y", "key: calc.x"), "break the circle"),
        (rule(given="key: calc.*"), "name each calc_rule that it reads"),
        (rule(given="key: dsp.load, each: median"), "'median' is not a function"),
        (rule(given="key: dsp.load, each: quantile"), "write quantile(0.95)"),
        (rule(given="key: dsp.load, each: quantile(1.5)"), "is not from 0 to 1"),
        (rule(given="key: dsp.load, over: 8d"), "at most 7d"),
        (rule(given="key: dsp.load, aggregate: absent, default: 1"), "always has a value"),
        (rule(every="500ms"), "from 1s to 1d"),
        (rule(every="2d"), "from 1s to 1d"),
        (rule(keys=", by: [zone], owners: [a]"), "'owners' without 'by: [owner]'"),
        (rule(keys=", owner: b"), "the owner is in 'by'"),
        (rule(keys=", by: [zone, zone]"), "twice"),
        (rule() + "---\nevent_rule: {name: e, datapoint: calc.xx, above: 1}\n", "did you mean 'x'"),
        (rule().replace("{a:", "{now:"), "an input 'now'"),
        (rule(keys=f", owners: [{', '.join(f'o{n}' for n in range(10_001))}]"), "10000"),
    ],
)
def test_a_mistake_is_named(text: str, says: str) -> None:
    problems = problems_of(text)
    assert problems, "accepted"
    assert any(says in problem for problem in problems), "\n".join(problems)


def test_a_chain_is_no_circle() -> None:
    chain = rule("x") + rule("y", "key: calc.x") + rule("z", "key: calc.y")
    load_text(chain + "---\nevent_rule: {name: e, datapoint: calc.z, above: 1}\n")
