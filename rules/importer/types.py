"""The datapoint_types of imported rules: one for each metric that they read.

In Prometheus every combination of labels is a series. In Tocsin only the `dimensions` of a type
distinguish the series of an owner and key. The dimensions of an imported type are the labels that the
rules mention, because a rule file names no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rules.importer.names import Names
from rules.importer.translation import ImportedDocument
from schemas.documents.calc_rule import OWNER
from schemas.wire.calculated import CALC_PREFIX

_MAX_DIMENSIONS = 8
_LABEL_IN_CONDITION = re.compile(r'"([A-Za-z_][A-Za-z0-9_]*)" in labels')
_LABEL_IN_MESSAGE = re.compile(r"\blabels\.([A-Za-z_][A-Za-z0-9_]*)")
_OF_COUNTERS = {"rate", "increase"}


@dataclass(slots=True)
class _Metric:
    labels: set[str] = field(default_factory=set)
    is_counter: bool = False


def datapoint_types(documents: Iterable[ImportedDocument]) -> list[ImportedDocument]:
    """The types of the keys that documents read, in the order of the keys.

    A key whose rules mention no label, and that is no counter, needs no type.
    """
    metrics: dict[str, _Metric] = {}
    for kind, document in documents:
        for key, labels, each in _read_keys(kind, document):
            if not key.startswith(CALC_PREFIX):
                metric = metrics.setdefault(key, _Metric())
                metric.labels |= labels
                metric.is_counter = metric.is_counter or each in _OF_COUNTERS
    names = Names()
    return [
        ImportedDocument("datapoint_type", _document(names.take(key), key, metrics[key]))
        for key in sorted(metrics)
        if metrics[key].labels or metrics[key].is_counter
    ]


def _document(name: str, key: str, metric: _Metric) -> Mapping[str, Any]:
    document: dict[str, Any] = {"name": name, "key": key}
    if metric.is_counter:
        document["counter"] = True
    if metric.labels:
        document["dimensions"] = sorted(metric.labels)[:_MAX_DIMENSIONS]
    return document


def _read_keys(kind: str, document: Mapping[str, Any]) -> Iterator[tuple[str, set[str], str]]:
    """Each key that a document reads, with the labels that it mentions and the function of the input."""
    if kind == "event_rule":
        mentioned = set(_LABEL_IN_MESSAGE.findall(document.get("message", "")))
        yield document["datapoint"], mentioned | _conditions(document), ""
    elif kind == "calc_rule":
        grouped = {label for label in document["by"] if label != OWNER}
        for given in document["inputs"].values():
            buckets = {"le"} if str(given.get("aggregate", "")).startswith("histogram") else set()
            yield given["key"], grouped | _conditions(given) | buckets, given.get("each", "")


def _conditions(fields: Mapping[str, Any]) -> set[str]:
    return set(_LABEL_IN_CONDITION.findall(fields.get("where", "")))
