"""A compiled calc_rule: which series belong to which group, and the value of a group.

Guarantee: a series is in at most one group of an input. The groups of a window are those of the
series of any input, the `owners` of the document, and the only group if `by` is empty. A group has a
result if every input that `value` reads has a value: that of its series, or its default.

Missing series are concluded only from a complete range: while an arrival gap reaches into the range
of an input, nothing could arrive, and the input has no default and is not absent.

Pure: no I/O, except for a cache of the results of `where`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple
from uuid import UUID, uuid5

from rules.calc.functions import SeriesValue, value_of_group
from rules.calc.gaps import GapIndex
from rules.engine.types import TypeIndex
from rules.language.cel import ExpressionInvalid, compile_where
from rules.language.cel.calculation import compile_calculation
from schemas.documents.calc_rule import BUCKET_LABEL, OWNER, CalcInput, CalcRuleDocument
from schemas.values.key_pattern import covers
from schemas.values.names import MAX_OWNER_LENGTH
from schemas.values.series_key import base_key, series_key
from schemas.wire.calculated import CALC_PREFIX
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import MICROSECOND, instant_of
from tocsin.core.records import NewCalculated

Group = tuple[str, ...]
"""The values of `by`, in its order."""
Groups = Mapping[Group, Sequence[SeriesValue]]
MAX_GROUPS = 10_000
"""Results of one rule in one window. Of more groups, the first in order have a result."""
_MAX_CACHED_SERIES = 100_000
_NAMESPACE = UUID("5b0f7b1e-4f2c-5d38-9a44-0f6e6b7f3c21")


class CalcPoint(NamedTuple):
    """A result: the value of a calculated series at the end of a window."""

    owner: str
    key: str
    end: int
    """Microseconds since 1970."""
    value: float | bool
    labels: dict[str, str]

    def as_record(self) -> NewCalculated:
        payload = {"value": self.value, "labels": self.labels}
        id = uuid5(_NAMESPACE, f"{self.owner}\0{self.key}\0{self.end}")
        return NewCalculated(self.owner, self.key, instant_of(self.end), "calc", payload, id)


class Conclusion(NamedTuple):
    points: list[CalcPoint]
    failed: int = 0
    """Groups whose value could not be calculated, such as after a division by zero."""
    dropped: int = 0
    """Groups beyond `MAX_GROUPS`, or with a key that is too long."""


class InputRange(NamedTuple):
    """The range of an input before the end of a window, in microseconds."""

    over: int
    offset: int
    late_after: int

    def bounds(self, end: int) -> tuple[int, int]:
        """A datapoint is in the range if its arrival lies after the first and not after the second."""
        return end - self.offset - self.over, end - self.offset


class CompiledInput:
    def __init__(self, rule: CalcRuleDocument, name: str, types: TypeIndex) -> None:
        given: CalcInput = rule.inputs[name]
        self.name = name
        self.key = given.key
        self.each, self.aggregate, self.default = given.each, given.aggregate, given.default
        self.is_calculated = given.key.startswith(CALC_PREFIX)
        over = rule.over(name) // MICROSECOND
        late_after = over if given.late_after is None else given.late_after // MICROSECOND
        self.range = InputRange(over, given.offset // MICROSECOND, late_after)
        self.where = None if given.where is None else compile_where(given.where, rule=rule.name)
        self._by = rule.by
        self._types = types
        self._cache: dict[tuple[str, str], tuple[dict[str, str], Group | None]] = {}

    def reads(self, key: str) -> bool:
        """Whether it reads the series of a key, apart from `where`."""
        base = base_key(key)
        return self.is_calculated == base.startswith(CALC_PREFIX) and covers(self.key, base)

    def group_of(self, owner: str, key: str, labels: dict[str, str]) -> Group | None:
        """The group of a series; None if `where` leaves the series out."""
        series = (owner, key)
        cached = self._cache.get(series)
        if cached is not None and cached[0] == labels:
            return cached[1]
        group = self._find_group(owner, base_key(key), labels)
        if len(self._cache) >= _MAX_CACHED_SERIES:
            self._cache.clear()
        self._cache[series] = (labels, group)
        return group

    def _find_group(self, owner: str, key: str, labels: dict[str, str]) -> Group | None:
        labels = self._types.labels(key, labels)
        if self.where is not None:
            facts = {"owner": owner, "key": key, "labels": labels}
            if self.where.evaluate(facts, is_error_expected=True) is not True:
                return None
        return tuple(owner if name == OWNER else labels.get(name, "") for name in self._by)

    def bucket_of(self, key: str, labels: dict[str, str]) -> float | None:
        """The upper bound of a series that is a bucket of a histogram; None for any other."""
        if self.aggregate.name != "histogram_quantile":
            return None
        text = self._types.labels(base_key(key), labels).get(BUCKET_LABEL, "")
        try:
            bound = inf if text in ("+Inf", "Inf", "inf") else float(text)
        except ValueError:
            return None
        return None if bound != bound else bound


class CalcRule:
    def __init__(self, document: CalcRuleDocument, types: TypeIndex) -> None:
        """`InvalidInput` if a condition or the value does not compile."""
        self.document = document
        self.name = document.name
        self.every = document.every // MICROSECOND
        try:
            self.inputs = {name: CompiledInput(document, name, types) for name in document.inputs}
            self._calculation = compile_calculation(document.value, document.inputs)
        except ExpressionInvalid as invalid:
            raise InvalidInput(str(invalid)) from None

    def conclude(self, end: int, inputs: Mapping[str, Groups], gaps: GapIndex) -> Conclusion:
        """The results of the window that ends at `end`, by group."""
        groups = {group for of_input in inputs.values() for group in of_input}
        groups |= {(owner,) for owner in self.document.owners}
        if not self.document.by:
            groups.add(())
        ordered = sorted(groups)
        missing = {name: self._value_of_missing(given, end, gaps) for name, given in self.inputs.items()}
        points: list[CalcPoint] = []
        failed, dropped = 0, max(0, len(ordered) - MAX_GROUPS)
        for group in ordered[:MAX_GROUPS]:
            values = self._values(group, inputs, missing)
            if values is None:
                continue
            value = self._calculation.evaluate(values, end / 1_000_000)
            if value is None:
                failed += 1
                continue
            point = self._point(group, end, value)
            if point is None:
                dropped += 1
            else:
                points.append(point)
        return Conclusion(points, failed, dropped)

    def _values(
        self, group: Group, inputs: Mapping[str, Groups], missing: Mapping[str, float | None]
    ) -> dict[str, float] | None:
        values: dict[str, float] = {}
        for name in self._calculation.names:
            series = inputs[name].get(group)
            aggregate = self.inputs[name].aggregate
            if not series:
                value = missing[name]
            elif aggregate.name == "absent":
                value = 0.0
            else:
                value = value_of_group(aggregate, series)
            if value is None:
                return None
            values[name] = value
        return values

    @staticmethod
    def _value_of_missing(given: CompiledInput, end: int, gaps: GapIndex) -> float | None:
        default = 1.0 if given.aggregate.name == "absent" else given.default
        if default is None or gaps.overlap(*given.range.bounds(end)):
            return None
        return default

    def _point(self, group: Group, end: int, value: float | bool) -> CalcPoint | None:
        document = self.document
        owner = document.name if document.owner is None else document.owner
        labels: dict[str, str] = {}
        for name, text in zip(document.by, group, strict=True):
            if name == OWNER:
                owner = text
            elif text:
                labels[name] = text
        try:
            key = series_key(document.key, labels, tuple(labels))
        except ValueError:
            return None
        return None if len(owner) > MAX_OWNER_LENGTH else CalcPoint(owner, key, end, value, labels)
