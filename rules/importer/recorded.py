"""Metrics that recording rules of the import record: which calc_rule has the series of a selector. Pure.

Several rules may record one metric, told apart by labels that the rules give their results. Each of
them becomes a calc_rule of its own. Its key stands for these labels, so a selector names one of the
calc_rules by its matchers. One that selects the results of several has no translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rules.importer.translation import Untranslatable
from schemas.wire.calculated import CALC_PREFIX


class MetricRecording(NamedTuple):
    """A calc_rule of a recorded metric, and the labels that its recording rule adds."""

    name: str
    labels: Mapping[str, str]


class RecordedMetrics:
    def __init__(self, recordings: Iterable[tuple[str, MetricRecording]]) -> None:
        self._by_metric: dict[str, list[MetricRecording]] = {}
        for metric, recording in recordings:
            self._by_metric.setdefault(metric, []).append(recording)
        self.metrics = {one.name: metric for metric, found in self._by_metric.items() for one in found}
        """The metric of each calc_rule, by its name."""
        self.unreadable: dict[str, str] = {}
        """The calc_rules that do not exist after all, with the reason."""

    def source(self, metric: str, matchers: Sequence[Any]) -> tuple[str, list[Any]]:
        """The key of the series of a selector, and the matchers that are left for its labels."""
        if metric not in self._by_metric:
            return metric.replace(":", "-"), list(matchers)
        found = [one for one in self._by_metric[metric] if _may_select(matchers, one.labels)]
        if not found:
            raise Untranslatable(f"it reads '{metric}', which no rule records with these labels")
        if len(found) > 1:
            raise Untranslatable(
                f"it reads '{metric}', which {len(found)} rules record: its matchers do not choose one of them"
            )
        (recording,) = found
        if recording.name in self.unreadable:
            raise Untranslatable(f"it reads '{metric}', {self.unreadable[recording.name]}")
        left = [matcher for matcher in matchers if matcher.name not in recording.labels]
        return CALC_PREFIX + recording.name, left


def _may_select(matchers: Iterable[Any], labels: Mapping[str, str]) -> bool:
    return all(_matches(matcher, labels[matcher.name]) for matcher in matchers if matcher.name in labels)


def _matches(matcher: Any, value: str) -> bool:
    operator = str(matcher.op).removeprefix("MatchOp.")
    if operator in ("Equal", "NotEqual"):
        return bool(matcher.value == value) == (operator == "Equal")
    try:
        is_match = re.fullmatch(matcher.value, value) is not None
    except re.error:
        raise Untranslatable(f"the pattern '{matcher.value[:40]}' cannot be read") from None
    return is_match == (operator == "Re")
