"""calc_rules give the numbers of Prometheus, where docs/calculated-series.md declares them the same.

promtool evaluates the same series (`tests/promtool.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isclose
from pathlib import Path
from random import Random

import pytest

from rules.calc.gaps import NO_GAPS
from rules.calc.memory import CalcMemory, InputGroups
from rules.calc.rule import CalcRule
from rules.engine import Arrival
from rules.engine.types import TypeIndex
from schemas.documents import CalcRuleDocument
from tests.promtool import promtool_answer
from tocsin.core.instant import microseconds_of

STEP_S, COUNT, EPOCH = 13, 60, datetime(1970, 1, 1, tzinfo=UTC)
Series = dict[tuple[tuple[str, str], ...], list[float]]
"""Values `STEP_S` apart, by their labels. No instant of evaluation is a multiple of the step: a range of
Prometheus 2 contains its beginning."""

_HISTOGRAM = {"over": "5m", "aggregate": "histogram_quantile(0.9)"}
# An expression of Prometheus, and the input, `by` and `value` of a calc_rule.
SAME = [
    ("sum by (owner) (g)", {"key": "g", "over": "5m"}, ["owner"], "a"),
    ("avg by (owner) (avg_over_time(g[1m]))", {"each": "avg", "aggregate": "avg"}, ["owner"], "a"),
    ("min by (owner) (min_over_time(g[1m]))", {"each": "min", "aggregate": "min"}, ["owner"], "a"),
    ("max by (zone) (max_over_time(g[2m]))", {"each": "max", "aggregate": "max", "over": "2m"}, ["zone"], "a"),
    ("sum by (zone) (sum_over_time(g[1m]))", {"each": "sum"}, ["zone"], "a"),
    ("sum(count_over_time(g[1m]))", {"each": "count"}, [], "a"),
    ("count by (zone) (g)", {"over": "5m", "aggregate": "count"}, ["zone"], "a"),
    ("max by (owner) (stddev_over_time(g[3m]))", {"each": "stddev", "aggregate": "max", "over": "3m"}, ["owner"], "a"),
    ("stddev(g)", {"over": "5m", "aggregate": "stddev"}, [], "a"),
    ("quantile by (zone) (0.7, g)", {"over": "5m", "aggregate": "quantile(0.7)"}, ["zone"], "a"),
    ("sum by (owner) (quantile_over_time(0.9, g[4m]))", {"each": "quantile(0.9)", "over": "4m"}, ["owner"], "a"),
    ("sum by (owner) (changes(g[3m]))", {"each": "changes", "over": "3m"}, ["owner"], "a"),
    ("sum by (owner) (avg_over_time(g[1m] offset 2m))", {"each": "avg", "offset": "2m"}, ["owner"], "a"),
    ("sum by (owner) (predict_linear(g[4m], 3600))", {"each": "predict_linear(1h)", "over": "4m"}, ["owner"], "a"),
    ('sum by (owner) (g{zone="n"})', {"over": "5m", "where": 'labels.zone == "n"'}, ["owner"], "a"),
    ("sum by (owner) (g) * 2", {"over": "5m"}, ["owner"], "a * 2.0"),
    ("time() - sum(g)", {"over": "5m"}, [], "now - a"),
    ("histogram_quantile(0.9, sum by (owner, le) (h))", {"key": "h", **_HISTOGRAM}, ["owner"], "a"),
]  # fmt: skip


def gauges(random: Random) -> Series:
    return {
        (("owner", owner), ("zone", zone)): [float(random.randint(-50, 50)) for _ in range(COUNT)]
        for owner in "ab"
        for zone in "ns"
    }


def histograms(random: Random) -> Series:
    found: Series = {}
    for owner in "ab":
        count = 0.0
        for bound in ("0.1", "0.5", "2", "+Inf"):
            count += random.randint(1, 40)
            found[("owner", owner), ("le", bound)] = [count] * COUNT
    return found


def question(keys: dict[str, Series]) -> list[object]:
    return [
        [key, sorted([labels, values] for labels, values in series.items())] for key, series in keys.items()
    ]


def of_prometheus(
    folder: Path, expressions: list[str], keys: dict[str, Series], at_s: int
) -> list[dict[str, float]]:
    """The values of expressions, by the text of their labels. An expectation that no value meets makes
    promtool print them."""
    inputs = [
        {
            "series": key + "{" + ",".join(f'{name}="{text}"' for name, text in labels) + "}",
            "values": " ".join(map(repr, values)),
        }
        for key, series in keys.items()
        for labels, values in series.items()
    ]
    wrong = [{"labels": "none", "value": 12345.678}]
    checks = [{"expr": text, "eval_time": f"{at_s}s", "exp_samples": wrong} for text in expressions]
    test = {"interval": f"{STEP_S}s", "input_series": inputs, "promql_expr_test": checks}
    (folder / "test.yaml").write_text(
        json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": [test]})
    )
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    printed = re.findall(r"got:\[?(.*)", done.stdout + done.stderr)
    assert len(printed) == len(expressions), done.stdout + done.stderr
    sample = re.compile(r"(\{[^}]*\}) ([-+0-9.E]+)")
    return [{labels: float(value) for labels, value in sample.findall(line)} for line in printed]


def of_calc_rule(
    given: dict[str, str], by: list[str], value: str, keys: dict[str, Series], at_s: int
) -> dict[str, float]:
    document = CalcRuleDocument.model_validate(
        {
            "name": "x",
            "inputs": {"a": {"key": "g", "over": "1m", **given}},
            "by": by,
            "every": "1m",
            "value": value,
        }
    )
    rule, memory = CalcRule(document, TypeIndex(())), CalcMemory()
    for key, series in keys.items():
        for labels, values in series.items():
            owner, others = dict(labels)["owner"], {name: text for name, text in labels if name != "owner"}
            for number, sent in enumerate(values):
                at = EPOCH + timedelta(seconds=number * STEP_S)
                place = key + "".join(f".{text.strip('+').replace('.', '_')}" for text in others.values())
                memory.arrive([Arrival(at, number, owner, place, sent, at, others)])
    end = microseconds_of(EPOCH + timedelta(seconds=at_s))
    return _conclude(rule, memory, end)


def _conclude(rule: CalcRule, memory: CalcMemory, end: int) -> dict[str, float]:
    inputs = {name: InputGroups() for name in rule.inputs}
    memory.collect(rule, end, inputs)
    concluded = rule.conclude(end, inputs, NO_GAPS)
    assert (concluded.failed, concluded.dropped) == (0, 0)
    found = {}
    for point in concluded.points:
        labels = dict(point.labels) | ({"owner": point.owner} if "owner" in rule.document.by else {})
        found["{" + ", ".join(f'{name}="{text}"' for name, text in sorted(labels.items())) + "}"] = float(
            point.value
        )
    return found


@pytest.mark.parametrize("seed", range(4))
def test_calc_rules_give_what_prometheus_gives(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    keys = {"g": gauges(random), "h": histograms(random)}
    expressions = [expression for expression, *_ in SAME]
    for at_s in (300, 540):
        theirs = promtool_answer(
            f"calc-{seed}-{at_s}",
            [expressions, question(keys), at_s],
            partial(of_prometheus, tmp_path, expressions, keys, at_s),
        )
        for (expression, given, by, value), expected in zip(SAME, theirs, strict=True):
            given = {**given, "key": given.get("key", "g") + ".*"}
            found = of_calc_rule(given, by, value, keys, at_s)
            assert expected, expression
            assert found.keys() == expected.keys(), expression
            for labels, number in expected.items():
                assert isclose(found[labels], number, rel_tol=1e-9, abs_tol=1e-9), (expression, labels)


def test_the_rate_of_prometheus_differs_by_its_extrapolation_alone(tmp_path: Path) -> None:
    """So a ratio of rates over the same datapoints is the same."""
    random = Random(7)
    counters: Series = {
        (("owner", owner), ("zone", zone)): [float(number * random.randint(3, 5)) for number in range(COUNT)]
        for owner in "ab"
        for zone in "ns"
    }
    for series in counters.values():
        series.sort()
    keys = {"g": counters}
    expression = 'sum by (owner) (rate(g{zone="n"}[3m])) / sum by (owner) (rate(g[3m]))'
    raw = "sum by (owner) (rate(g[3m]))"
    expected, extrapolated = promtool_answer(
        "rate-540",
        [expression, raw, question(keys)],
        lambda: of_prometheus(tmp_path, [expression, raw], keys, 540),
    )
    given = {"key": "g.*", "each": "rate", "over": "3m"}
    part = of_calc_rule({**given, "where": 'labels.zone == "n"'}, ["owner"], "a", keys, 540)
    whole = of_calc_rule(given, ["owner"], "a", keys, 540)
    for labels, number in expected.items():
        assert isclose(part[labels] / whole[labels], number, rel_tol=1e-9)
        assert isclose(whole[labels], extrapolated[labels], rel_tol=0.1)
