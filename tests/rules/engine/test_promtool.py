"""`for` and `keep_firing_for` open and resolve at the instants of Prometheus, on their boundaries too.

promtool evaluates the same series (`tests/promtool.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from rules.documents.load import load_text
from rules.replay.rule_tests import World
from tests.promtool import promtool_answer

START = datetime(2026, 3, 4, 10, tzinfo=UTC)
MINUTES = 40


class Case(NamedTuple):
    values: tuple[int, ...]
    sustain_s: int
    keep_s: int

    def key(self, number: int) -> str:
        return f"m{number}"


def cases(random: Random, count: int) -> list[Case]:
    """Runs of a few minutes, so that many of them end exactly with a duration.

    Durations are multiples of the interval: Prometheus concludes nothing between two evaluations.
    """
    found = []
    for _ in range(count):
        values: list[int] = []
        while len(values) < MINUTES:
            values += [random.choice([0, 70])] * random.randint(1, 5)
        durations = random.choice([0, 60, 120, 180]), random.choice([0, 60, 120, 180])
        found.append(Case(tuple(values[:MINUTES]), *durations))
    return found


def firing_in_prometheus(folder: Path, given: list[Case]) -> dict[str, str]:
    """Minute by minute, 1 while the alert of a case fires and 0 otherwise."""
    rules = [
        {
            "alert": case.key(number),
            "expr": f"{case.key(number)} > 50",
            "for": f"{case.sustain_s}s",
            "keep_firing_for": f"{case.keep_s}s",
        }
        for number, case in enumerate(given)
    ]
    series = [
        {"series": case.key(number), "values": " ".join(map(str, case.values))}
        for number, case in enumerate(given)
    ]
    wrong = [{"labels": "none", "value": 12345.678}]
    checks = [
        {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{minute}m", "exp_samples": wrong}
        for minute in range(MINUTES)
    ]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": checks}
    (folder / "rules.yaml").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    (folder / "test.yaml").write_text(
        json.dumps({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]})
    )
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    output = done.stdout + done.stderr
    printed = re.split(r"\bexp:", output)[1:]
    assert len(printed) == MINUTES, output[:2000]
    names = [set(re.findall(r'alertname="(m\d+)"', text)) for text in printed]
    return {
        case.key(number): "".join(str(int(case.key(number) in of_minute)) for of_minute in names)
        for number, case in enumerate(given)
    }


def transitions(world: World) -> list[tuple[float, str, str]]:
    return [
        ((entry.at - START).total_seconds() / 60, entry.name, entry.state)
        for entry in world.log
        if entry.kind == "alarm"
    ]


def firing_here(given: list[Case]) -> dict[str, str]:
    documents = []
    for number, case in enumerate(given):
        durations = f", for: {case.sustain_s}s" if case.sustain_s else ""
        durations += f", keep_firing_for: {case.keep_s}s" if case.keep_s else ""
        key = case.key(number)
        documents.append(f"event_rule: {{name: {key}, datapoint: {key}, above: 50{durations}}}\n")
    world = World((one.model for one in load_text("---\n".join(documents)).documents), START)
    for number, case in enumerate(given):
        for minute, value in enumerate(case.values):
            at = START + timedelta(minutes=minute)
            world.at(at, "arrive", owner="o", key=case.key(number), value=float(value))
    world.run_until(START + timedelta(minutes=MINUTES))
    found = {}
    for number, case in enumerate(given):
        changes = [(at, state) for at, name, state in transitions(world) if name == case.key(number)]
        assert all(before[0] <= after[0] for before, after in pairwise(changes))
        states = [
            next((state for at, state in reversed(changes) if at <= minute), "resolved")
            for minute in range(MINUTES)
        ]
        found[case.key(number)] = "".join("1" if state == "opened" else "0" for state in states)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_alerts_fire_in_the_same_minutes(tmp_path: Path, seed: int) -> None:
    given = cases(Random(seed), 60)
    theirs = promtool_answer(f"sustain-{seed}", given, lambda: firing_in_prometheus(tmp_path, given))
    ours = firing_here(given)
    different = [
        (case, theirs[case.key(number)], ours[case.key(number)])
        for number, case in enumerate(given)
        if theirs[case.key(number)] != ours[case.key(number)]
    ]
    assert not different, f"{len(different)} of {len(given)}, the first: {different[0]}"
    assert any("1" in minutes for minutes in theirs.values())
