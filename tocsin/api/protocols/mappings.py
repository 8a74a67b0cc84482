"""The mappings and datapoint_types in force, for the protocols of metrics and alerts."""

from __future__ import annotations

from typing import NamedTuple

from rules.documents.rule_book import RuleSet
from rules.engine import TypeIndex
from schemas.documents import DatapointTypeDocument, IngestMappingDocument
from schemas.documents.ingest_mapping import METRIC_SOURCES, MetricSource
from tocsin.api.protocols.applied_rules import AppliedRules
from tocsin.protocols.placement import Placement


class Mappings(NamedTuple):
    placements: dict[MetricSource, Placement]
    types: TypeIndex


def applied_mappings() -> AppliedRules[Mappings]:
    return AppliedRules(_compile, IngestMappingDocument, DatapointTypeDocument)


def _compile(documents: RuleSet, _: Mappings | None = None) -> Mappings:
    mappings = list(documents.of(IngestMappingDocument).values())
    placements = {source: Placement(source, mappings) for source in METRIC_SOURCES}
    return Mappings(placements, TypeIndex(documents.of(DatapointTypeDocument).values()))
