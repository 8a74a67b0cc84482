"""Places samples: owner, key and labels of each by the `ingest_mapping` documents in force.

Guarantee: the first mapping that matches decides, in the order of their names. Without a mapping for
a protocol its default applies: the owner is the label that its clients have always (`DEFAULT_OWNERS`)
and the key is the name of the metric. With mappings, a sample that none matches is skipped.

Samples with different labels in one series would overwrite each other. Those of one request are all
rejected, and the reason names the labels that distinguish them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from schemas.documents.ingest_mapping import METRIC, PLACEHOLDER, IngestMappingDocument, MetricSource
from schemas.wire.datapoint import check_datapoint
from tocsin.core.errors import InvalidInput
from tocsin.protocols.sample import ReadSamples, Sample

DEFAULT_OWNERS: Mapping[MetricSource, str] = {
    "prometheus": "{instance}",
    "otlp": "{service.name}",
    "influx": "{host}",
    "alertmanager": "{instance}",
}
SeriesKey = Callable[[str, dict[str, str]], str]
"""The key of the series of a key and its labels, by the datapoint_types in force."""
_NOT_IN_KEY = re.compile(r"[\s*>{\x00-\x1f\x7f\ud800-\udfff]")
_NOT_IN_PART = re.compile(r"[\s.*>{\x00-\x1f\x7f\ud800-\udfff]")
_MAX_SHOWN = 3
_MAX_TEXT = 1_024


class Placed(NamedTuple):
    """A sample with its owner, key and labels."""

    owner: str
    key: str
    sample: Sample


@dataclass
class PlacedSamples:
    placed: list[Placed] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: int = 0


class Placement:
    """The mappings of one protocol, compiled."""

    def __init__(self, source: MetricSource, documents: Iterable[IngestMappingDocument] = ()) -> None:
        given = [document for document in documents if document.enabled and source in document.sources]
        if not given:
            default = {"name": "default", "sources": [source], "owner": DEFAULT_OWNERS[source]}
            given = [IngestMappingDocument.model_validate(default)]
        self._mappings = [_Mapping(document) for document in sorted(given, key=lambda one: one.name)]

    def place(self, sample: Sample) -> Placed | None:
        """None if no mapping matches. `ValueError` with the reason if it cannot be placed."""
        mapping = self._find(sample)
        return None if mapping is None else mapping.place(sample)

    def owner_of(self, metric: str, labels: dict[str, str]) -> str | None:
        """The owner of something that is no datapoint, such as an alert."""
        sample = Sample(metric, labels, 0)
        mapping = self._find(sample)
        return None if mapping is None else mapping.owner(sample)

    def _find(self, sample: Sample) -> _Mapping | None:
        _check_lengths(sample)
        return next((mapping for mapping in self._mappings if mapping.matches(sample)), None)


class _Mapping:
    def __init__(self, document: IngestMappingDocument) -> None:
        self._document = document
        self._metrics = re.compile("|".join(_regex(pattern) for pattern in document.metrics), re.DOTALL)
        self._labels = {
            name: re.compile(_regex(pattern), re.DOTALL) for name, pattern in document.labels.items()
        }
        used = {*PLACEHOLDER.findall(document.owner), *PLACEHOLDER.findall(document.key)}
        self._dropped = frozenset(document.drop) | used
        self._kept = None if document.keep is None else frozenset(document.keep)

    def matches(self, sample: Sample) -> bool:
        labels = sample.labels
        return self._metrics.fullmatch(sample.metric) is not None and all(
            regex.fullmatch(labels.get(name, "")) for name, regex in self._labels.items()
        )

    def owner(self, sample: Sample) -> str:
        return self._fill("owner", self._document.owner, sample, lambda value: value)

    def place(self, sample: Sample) -> Placed:
        owner = self.owner(sample)
        key = self._fill("key", self._document.key, sample, _as_part)
        labels = {name: value for name, value in sample.labels.items() if value and self._keeps(name)}
        try:
            check_datapoint(owner, {"key": key, "value": sample.value, "labels": labels})
        except InvalidInput as invalid:
            raise ValueError(f"{_shown(sample)}: {invalid}") from None
        return Placed(owner, key, sample._replace(labels=labels))

    def _keeps(self, name: str) -> bool:
        return name not in self._dropped if self._kept is None else name in self._kept

    def _fill(self, where: str, text: str, sample: Sample, as_text: Callable[[str], str]) -> str:
        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name == METRIC:
                return _as_key(sample.metric)
            given = sample.labels.get(name)
            if not given:
                raise ValueError(
                    f"{_shown(sample)} has no label {name!r}, which is part of the {where} in ingest_mapping "
                    f"{self._document.name!r}: send it, or map the metric by another label"
                )
            return as_text(given)

        return PLACEHOLDER.sub(value, text)


def place_all(read: ReadSamples, placement: Placement, series_key: SeriesKey) -> PlacedSamples:
    """Place the samples of a request. The order of the samples is kept."""
    result = PlacedSamples(problems=list(read.problems), skipped=read.skipped)
    placed: list[Placed] = []
    for sample in read.samples:
        try:
            one = placement.place(sample)
        except ValueError as error:
            result.problems.append(str(error))
            continue
        if one is None:
            result.skipped += 1
        else:
            placed.append(one)
    mixed = _mixed_series(placed, series_key, result.problems)
    result.placed = [one for one in placed if _series(one, series_key) not in mixed]
    return result


def _mixed_series(
    placed: Sequence[Placed], series_key: SeriesKey, problems: list[str]
) -> set[tuple[str, str]]:
    """The series that samples with different labels share; their problems are added."""
    label_sets: defaultdict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for one in placed:
        sets = label_sets[_series(one, series_key)]
        if len(sets) < _MAX_SHOWN and one.sample.labels not in sets:
            sets.append(one.sample.labels)
    mixed = {series for series, sets in label_sets.items() if len(sets) > 1}
    for owner, key in sorted(mixed):
        differ = ", ".join(_differing(label_sets[owner, key]))
        problems.append(
            f"the series {key!r} of {owner!r} has several values, which differ in the labels {differ}: name them "
            "as dimensions of a datapoint_type for this key, or drop them in the ingest_mapping"
        )
    return mixed


def _series(placed: Placed, series_key: SeriesKey) -> tuple[str, str]:
    """As far as it is known: a key that is too long is rejected by the worker."""
    try:
        return placed.owner, series_key(placed.key, placed.sample.labels)
    except ValueError:
        return placed.owner, placed.key


def _differing(label_sets: Sequence[dict[str, str]]) -> list[str]:
    names = sorted({name for labels in label_sets for name in labels})
    return [name for name in names if len({labels.get(name) for labels in label_sets}) > 1]


def _check_lengths(sample: Sample) -> None:
    """Before patterns are matched."""
    if len(sample.metric) > _MAX_TEXT:
        raise ValueError(
            f"the name {sample.metric[:80]!r}... is too long: use at most {_MAX_TEXT} characters"
        )
    for name, value in sample.labels.items():
        if len(name) > _MAX_TEXT or len(value) > _MAX_TEXT:
            raise ValueError(
                f"{_shown(sample)} has the label {name[:80]!r}, which is too long: "
                f"use at most {_MAX_TEXT} characters"
            )


def _regex(pattern: str) -> str:
    return ".*".join(re.escape(part) for part in re.split(r"\*+", pattern))


@lru_cache(maxsize=65_536)
def _as_key(metric: str) -> str:
    return _NOT_IN_KEY.sub("_", metric)


def _as_part(value: str) -> str:
    return _NOT_IN_PART.sub("_", value)


def _shown(sample: Sample) -> str:
    return f"the metric {sample.metric[:80]!r}"
