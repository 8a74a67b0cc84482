"""Counters, gauges and histograms, and the text in which Prometheus reads them.

Guarantee: `format_metrics` writes the exposition format 0.0.4, whatever a label holds: HELP and
TYPE for each family, label values escaped, histogram buckets cumulative. `format_openmetrics` writes
the same samples as OpenMetrics 1.0.0. A counter ends in `_total` and never decreases. Durations are in
seconds.

Why our own (docs/decisions/0018): each family needs only a dictionary. Values are changed by the
thread of the event loop alone, so they take no lock, and a batch is counted with one call.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
"""Bucket bounds: the goal for a fire is 10 ms, and an outage lasts minutes."""
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_LABEL = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})

Values = tuple[str, ...]
Sample = tuple[str, Sequence[tuple[str, str]], float]
"""Suffix of the family name, labels and value."""


class Family:
    """A metric with a value for each combination of its labels."""

    type = "untyped"

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        if not all(_NAME.fullmatch(word) for word in (name, *labels)):
            raise ValueError(f"{name!r} with the labels {labels!r} is not a valid metric name")
        self.name = name
        self.help = help
        self.labels = tuple(labels)

    def samples(self) -> Iterator[Sample]:
        raise NotImplementedError

    def _checked(self, values: Values) -> Values:
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} takes the labels {self.labels}, not {values}")
        return values

    def _named(self, values: Values) -> list[tuple[str, str]]:
        return list(zip(self.labels, values, strict=True))


class Counter(Family):
    type = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        super().__init__(name, help, labels)
        if not name.endswith("_total"):
            raise ValueError(f"{name!r} is a counter and must end in _total")
        # Starts at 0: otherwise Prometheus does not see the first increase. With labels, `add(0)`
        # does that.
        self._counts: dict[Values, float] = {} if labels else {(): 0}

    def add(self, amount: float, *values: str) -> None:
        if amount < 0:
            raise ValueError(f"{self.name} cannot decrease by {amount}")
        self._counts[values] = self._counts.get(self._checked(values), 0) + amount

    def samples(self) -> Iterator[Sample]:
        for values, count in self._counts.items():
            yield "", self._named(values), count


class Gauge(Family):
    type = "gauge"

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Values, float | Callable[[], float]] = {}

    def set(self, value: float, *values: str) -> None:
        self._values[self._checked(values)] = value

    def follow(self, read: Callable[[], float], *values: str) -> None:
        """Read the value at each scrape, until it is set or forgotten."""
        self._values[self._checked(values)] = read

    def forget(self, *values: str) -> None:
        self._values.pop(values, None)

    def samples(self) -> Iterator[Sample]:
        for values, value in self._values.items():
            yield "", self._named(values), value() if callable(value) else value


class Histogram(Family):
    type = "histogram"

    def __init__(
        self, name: str, help: str, labels: Sequence[str], bounds: Sequence[float] = SECONDS
    ) -> None:
        super().__init__(name, help, labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Values, list[int]] = {}
        self._sums: dict[Values, float] = {}

    def observe(self, value: float, *values: str) -> None:
        self.observe_all((value,), *values)

    def observe_all(self, observed: Iterable[float], *values: str) -> None:
        """Count a whole batch. Sorting it costs less than finding the bucket of each value."""
        ordered = sorted(observed)
        counts = self._counts.setdefault(self._checked(values), [0] * (len(self._bounds) + 1))
        for index, bound in enumerate(self._bounds):
            counts[index] += bisect_right(ordered, bound)
        counts[-1] += len(ordered)
        self._sums[values] = self._sums.get(values, 0.0) + sum(ordered)

    def samples(self) -> Iterator[Sample]:
        for values, counts in self._counts.items():
            named = self._named(values)
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                yield "_bucket", [*named, ("le", _number(bound))], count
            yield "_sum", named, self._sums[values]
            yield "_count", named, counts[-1]


_Family = TypeVar("_Family", bound=Family)


class Metrics:
    """A group of families with distinct names."""

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        return self._add(Counter(name, help, labels))

    def gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return self._add(Gauge(name, help, labels))

    def histogram(self, name: str, help: str, *labels: str) -> Histogram:
        return self._add(Histogram(name, help, labels))

    def _add(self, family: _Family) -> _Family:
        if self.families.setdefault(family.name, family) is not family:
            raise ValueError(f"{family.name!r} is declared twice")
        return family


def format_metrics(groups: Iterable[Metrics]) -> str:
    """The exposition of all families that have a sample."""
    lines: list[str] = []
    for family in (family for group in groups for family in group.families.values()):
        samples = [
            f"{family.name}{suffix}{_labels(labels)} {_number(value)}"
            for suffix, labels, value in family.samples()
        ]
        if samples:
            lines += [
                f"# HELP {family.name} {family.help.translate(_HELP)}",
                f"# TYPE {family.name} {family.type}",
                *samples,
            ]
    return "".join(f"{line}\n" for line in lines)


def format_openmetrics(groups: Iterable[Metrics]) -> str:
    """The same as OpenMetrics: a counter's family has no `_total`, bounds are floats, and it has an end."""
    lines: list[str] = []
    for family in (family for group in groups for family in group.families.values()):
        name = family.name.removesuffix("_total") if family.type == "counter" else family.name
        samples = [
            f"{family.name}{suffix}{_labels(_with_float_bounds(labels))} {_number(value)}"
            for suffix, labels, value in family.samples()
        ]
        if samples:
            help_text = family.help.translate(_LABEL)
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {family.type}", *samples]
    return "".join(f"{line}\n" for line in [*lines, "# EOF"])


def _with_float_bounds(labels: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, repr(float(value)) if _is_whole_bound(name, value) else value) for name, value in labels]


def _is_whole_bound(name: str, value: str) -> bool:
    return name == "le" and value.isdigit()


def _labels(labels: Sequence[tuple[str, str]]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_LABEL)}"' for name, value in labels) + "}"


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
