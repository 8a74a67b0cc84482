"""Datapoints evaluated per second by the engine on one core, compared with bare evaluation.

The bare loop makes a new Activation of exactly the variables that the condition reads, and
evaluates: it keeps no state, finds no rules and has no alarms. 1,000 series, one datapoint a minute
each; one series in a thousand fires now and then. CPU time is measured, so that other processes on
the machine do not count. `--datapoints N` (default 100,000).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from rules.engine import BLANK, Arrival, CompiledRules, Rule, RuleState, TypeIndex, step
from rules.language.cel.series import series_environment
from schemas.documents import DatapointTypeDocument, EventRuleDocument

_T0 = datetime(2026, 1, 1, tzinfo=UTC)
_KEY = "dsp.temperature"
_SERIES = 1_000
_ROUNDS = 3
_LABELS = {"zone": "north"}
_RULES: dict[str, dict[str, Any]] = {
    "value": {"fire": "value > 65.0"},
    "value and where": {"fire": "value > 65.0", "where": 'labels.zone == "north"'},
    "value and labels": {"fire": 'value > 65.0 && labels.zone == "north"'},
    "rate": {"fire": "rate > 5.0"},
    "window": {"fire": "value > 65.0", "window": {"over": "15m", "reduce": "avg"}},
}


def run(arguments: list[str]) -> dict[str, object]:
    count = int(arguments[arguments.index("--datapoints") + 1]) if "--datapoints" in arguments else 100_000
    data = [_datapoint(number) for number in range(count)]
    result: dict[str, object] = {"name": "engine", "datapoints": count}
    for name, condition in _RULES.items():
        rules, bare = _compiled(condition), bare_loop(str(condition["fire"]))
        limit = max(per_second(bare, data) for _ in range(_ROUNDS))
        ours = max(per_second(_engine(rules), data) for _ in range(_ROUNDS))
        result |= {f"{name}: bare": limit, f"{name}: engine": ours, f"{name}: ratio": ours / limit}
    result |= {
        "ours": result["value: engine"],
        "limit": result["value: bare"],
        "ratio": result["value: ratio"],
    }
    return {**result, "goal": "at least 0.4 of the bare loop for a condition over the value"}


def _datapoint(number: int) -> Arrival:
    minute, series = divmod(number, _SERIES)
    value = 70.0 if series == 7 and minute % 50 < 2 else 60.0 + number * 7 % 13 * 0.3
    at = _T0 + timedelta(minutes=minute)
    return Arrival(at, number, f"plant-{series}", _KEY, value, at, _LABELS)


def _compiled(condition: dict[str, Any]) -> CompiledRules:
    types = TypeIndex([DatapointTypeDocument.model_validate({"name": "t", "key": _KEY, "interval": "1m"})])
    facts = {"name": "r", "datapoint": _KEY, "for": "10m", **condition}
    return CompiledRules([Rule(EventRuleDocument.model_validate(facts), types)], types)


def bare_loop(fire: str) -> Callable[[list[Arrival]], object]:
    env = series_environment("number")
    expression = env.compile(fire)

    def evaluate(data: list[Arrival]) -> None:
        for arrival in data:
            variables: dict[str, object] = (
                {"rate": arrival.value} if "rate" in fire else {"value": arrival.value}
            )
            if "labels" in fire:
                variables["labels"] = arrival.labels
            expression.eval(env.Activation(variables)).value()

    return evaluate


def _engine(rules: CompiledRules) -> Callable[[list[Arrival]], object]:
    def evaluate(data: list[Arrival]) -> None:
        states: dict[tuple[str, str], RuleState] = {}
        for arrival in data:
            for rule in rules.for_key(arrival.key):
                subject = (rule.name, arrival.owner)
                before = states.get(subject, BLANK)
                after, _ = step(rule, before, arrival)
                if after is not before:
                    states[subject] = after

    return evaluate


def per_second(evaluate: Callable[[list[Arrival]], object], data: list[Arrival]) -> float:
    start = time.process_time()
    evaluate(data)
    return len(data) / (time.process_time() - start)
