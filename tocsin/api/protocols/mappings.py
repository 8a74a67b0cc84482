"""The mappings and datapoint_types in force, read again when rules were applied.

Guarantee: a request sees rules that were applied at most `_KEPT_S` ago. Concurrent requests read once.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from rules.documents.rule_book import RuleBook, RuleSet
from rules.engine import TypeIndex
from schemas.documents import DatapointTypeDocument, IngestMappingDocument
from schemas.documents.ingest_mapping import METRIC_SOURCES, MetricSource
from tocsin.api.context import ApiContext
from tocsin.protocols.placement import Placement

_KEPT_S = 1.0
# Behind the seq of every apply.
_NEWEST = 2**62


class Mappings(NamedTuple):
    placements: dict[MetricSource, Placement]
    types: TypeIndex


class MappingReader:
    def __init__(self) -> None:
        self._book: RuleBook[Mappings] = RuleBook(_compile, IngestMappingDocument, DatapointTypeDocument)
        self._read_at_s = 0.0
        self._reading = asyncio.Lock()

    async def read(self, context: ApiContext) -> Mappings:
        async with self._reading:
            now_s = time.monotonic()
            if self._read_at_s == 0.0 or now_s > self._read_at_s + _KEPT_S:
                async with context.session() as connection:
                    await self._book.refresh(connection, _NEWEST)
                self._read_at_s = now_s
            return self._book.at(_NEWEST)


def _compile(documents: RuleSet, _: Mappings | None = None) -> Mappings:
    mappings = list(documents.of(IngestMappingDocument).values())
    placements = {source: Placement(source, mappings) for source in METRIC_SOURCES}
    return Mappings(placements, TypeIndex(documents.of(DatapointTypeDocument).values()))
