"""The data lane: stores datapoints and hands them to the work that joins its batches.

Guarantee: a batch is evaluated with the documents of one apply, the newest when it commits. If
rules are applied between its planning and its first lock, it is planned again. Messages that are
rejected become dead letters before the batch commits, and never block it. What an owner sends beyond
its quota is rejected (`rules.lanes.quota`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from nats.js.client import JetStreamContext
from pydantic import ValidationError

from rules.documents.rule_book import RuleBook, RuleSet, newest_rules
from rules.engine.inputs import Arrival, Value
from rules.engine.types import TypeIndex
from rules.lanes.arrival_gap import ArrivalGap
from rules.lanes.batch import PhasedPlan, Writes
from rules.lanes.data_stream import (
    calculated_partition_subject,
    canary_subject,
    ensure_data_stream,
    is_calculated_subject,
    partition_of,
    partition_subject,
    producer_subject,
    refuse_other_partitions,
)
from rules.lanes.datapoint_store import DatapointWrites, PlacedArrival, prepare_staging
from rules.lanes.dead_letters import send_dead_letter
from rules.lanes.lane import BatchPlan, LaneMessage
from rules.lanes.lineage import NO_LINEAGES
from rules.lanes.quota import BatchUsage, Exceeded, Quotas, Usage
from rules.lanes.rules_unchanged import RulesUnchanged
from rules.lanes.series_quota import FullOwner, SeriesQuota
from rules.metrics import QUOTA_REJECTED
from schemas.documents.datapoint_type import DatapointTypeDocument
from schemas.error_text import error_text
from schemas.wire.calculated import CalculatedDatapoint
from schemas.wire.check_in import HEARTBEAT_PREFIX, check_datapoint_of
from schemas.wire.datapoint import Series, TimestampBounds, problem_summary, read_datapoints, series_of
from schemas.wire.dead_letter import dead_letter
from schemas.wire.subjects import text_of, token
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.records import NewRecords
from tocsin.core.settings import Settings

_VALUE_KINDS = {bool: "bool", str: "string", int: "number", float: "number"}
_BATCH = 1000
# Datapoints that are parsed before other tasks may run.
_PARSED_AT_ONCE = 500
_SENT_AT_ONCE = 100


class StalenessChange(NamedTuple):
    """A calculated datapoint about a series of this partition: it became stale or fresh."""

    at: datetime
    seq: int
    calculated: CalculatedDatapoint


class DataBatch(NamedTuple):
    """The inputs of one transaction of the data lane, in stream order."""

    partition: int
    inputs: Sequence[Arrival | StalenessChange]
    rules_seq: int
    """The apply whose documents are used.

    `RuleBook.refresh(connection, rules_seq + 1)`, then `.at(rules_seq + 1)`.
    """
    types: TypeIndex
    gaps: Sequence[ArrivalGap] = ()
    """The arrival gaps that messages of the batch ended."""
    watermark: datetime | None = None
    """The arrival of the last message, canaries included."""
    last_seq: int | None = None
    """The position of the partition after the batch."""
    lineages: Mapping[int, tuple[str, ...]] = NO_LINEAGES
    """The lineages of messages that runs sent, by their sequences."""


class DatapointWork(Protocol):
    """Work that joins the batches of the data lane."""

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        """Read and decide, without a lock."""


class DataLane:
    name = "data"
    dead_letter_kind = "datapoint"
    has_stable_sequences = False
    max_batch = _BATCH

    def __init__(self, settings: Settings, works: Sequence[DatapointWork] = ()) -> None:
        self.stream = settings.data_stream
        self._settings = settings
        self._works = works
        self._types: RuleBook[TypeIndex] = RuleBook(_index_types, DatapointTypeDocument)
        self._bounds = TimestampBounds(
            timedelta(days=settings.datapoint_retention_d), timedelta(seconds=settings.datapoint_future_s)
        )
        self._days: set[date] = set()
        quotas = Quotas(settings)
        self._usage: defaultdict[int, Usage] = defaultdict(lambda: Usage(quotas))
        """What owners have sent, by partition: each has one owner's messages alone and in order."""
        self._series = SeriesQuota(quotas)
        self._js: JetStreamContext | None = None

    def subjects(self, partition: int) -> list[str]:
        return [
            partition_subject(self._settings, partition),
            calculated_partition_subject(self._settings, partition),
        ]

    def is_sourced(self, subject: str) -> bool:
        return is_calculated_subject(self._settings, subject)

    async def read_stored(self, connection: Connection, after: int, limit: int) -> list[LaneMessage]:
        return []

    def source_of(self, message: LaneMessage) -> str:
        return message.subject.split(".", 5)[4]

    def canary_subject(self, partition: int) -> str | None:
        return canary_subject(self._settings, partition)

    async def open(self, connection: Connection, js: JetStreamContext) -> None:
        wanted = self._settings.data_partitions
        await connection.execute(statement("rules.lanes/begin_data_lane"), {"partitions": wanted})
        row = await fetch_one(connection, "rules.lanes/read_data_lane")
        assert row is not None
        refuse_other_partitions(self._settings, row[0])
        await ensure_data_stream(js, self._settings, row[1] + 1)
        await self._place_heartbeats(connection, wanted)
        self._js = js

    async def _place_heartbeats(self, connection: Connection, partitions: int) -> None:
        """Place the states of heartbeats that were applied before the first worker ran."""
        rows = await fetch_all(connection, "rules.lanes/list_heartbeat_owners")
        placed = {owner: partition_of(token(owner), partitions) for owner, _ in rows}
        moved = {owner: placed[owner] for owner, partition in rows if placed[owner] != partition}
        if moved:
            columns = {"owners": list(moved), "partitions": list(moved.values())}
            await connection.execute(statement("rules.lanes/place_heartbeats"), columns)

    def watermark_of(self, message: LaneMessage) -> datetime | None:
        return message.at

    async def idle_watermark(self, connection: Connection, position: int) -> datetime | None:
        """It stands still until a canary arrives: an empty stream proves nothing about producers."""
        return None

    async def plan(
        self,
        connection: Connection,
        partition: int,
        messages: Sequence[LaneMessage],
        gaps: Sequence[ArrivalGap] = (),
    ) -> BatchPlan:
        await prepare_staging(connection)
        rules_seq = await newest_rules(connection)
        await self._types.refresh(connection, rules_seq + 1)
        limits = BatchLimits(self._usage[partition].batch())
        if self._series.has_full_owners:
            owners = {self._owner(message) for message in messages}
            limits.full = await self._series.full_among(connection, owners)
        parsed, yielded_at = ParsedBatch(self._types.at(rules_seq + 1), self._bounds, limits), 0
        for message in messages:
            if message.is_canary:
                continue
            parsed.add(message)
            if len(parsed.inputs) > yielded_at + _PARSED_AT_ONCE:
                yielded_at = len(parsed.inputs)
                await asyncio.sleep(0)  # lets the transactions of other partitions continue
        await self._extend({message.at.date() for message in messages}, connection)
        batch = DataBatch(
            partition,
            parsed.inputs,
            rules_seq,
            parsed.types,
            gaps,
            watermark=messages[-1].at if messages else None,
            last_seq=messages[-1].seq if messages else None,
            lineages=parsed.lineages,
        )
        works = [await work.plan(connection, batch) for work in self._works]
        await self._send_dead_letters(parsed.rejected)
        datapoints = DatapointWrites(partition, parsed.datapoints, parsed.rejected_datapoints, self._series)
        return PhasedPlan([RulesUnchanged(rules_seq), datapoints, *works, QuotaWrites(limits.usage)])

    def _owner(self, message: LaneMessage) -> str:
        """The owner of a message; empty if its token is not one."""
        with suppress(ValueError):
            return text_of(self.source_of(message))
        return ""

    async def _extend(self, days: set[date], connection: Connection) -> None:
        """Create partitions for the days of arrival, and ahead for the day after."""
        wanted = days | {day + timedelta(days=1) for day in days}
        if wanted - self._days:
            bounds = {"first": min(wanted), "last": max(wanted)}
            await connection.execute(statement("rules.lanes/extend_datapoints"), bounds)
            self._days |= wanted

    async def _send_dead_letters(self, rejected: Sequence[tuple[LaneMessage, str]]) -> None:
        assert self._js is not None
        for begin in range(0, len(rejected), _SENT_AT_ONCE):
            sending = [
                send_dead_letter(
                    self._js,
                    self._settings,
                    self.dead_letter_kind,
                    dead_letter(
                        reason, producer_subject(self._settings, message.subject), message.at, message.data
                    ),
                    f"{self.stream}/{message.seq}",
                )
                for message, reason in rejected[begin : begin + _SENT_AT_ONCE]
            ]
            await asyncio.gather(*sending)


class ParsedBatch:
    """The parsed messages: inputs for the rules, datapoints to store, rejected messages."""

    def __init__(self, types: TypeIndex, bounds: TimestampBounds, limits: BatchLimits | None = None) -> None:
        self.types = types
        self._limits = limits
        self.inputs: list[Arrival | StalenessChange] = []
        self.datapoints: list[PlacedArrival] = []
        self.rejected: list[tuple[LaneMessage, str]] = []
        self.rejected_datapoints = 0
        self.lineages: dict[int, tuple[str, ...]] = {}
        self._bounds = bounds

    def add(self, message: LaneMessage) -> None:
        _, _, kind, _, owner, key = message.subject.split(".", 5)
        try:
            if kind == "calculated":
                self._add_calculated(message, CalculatedDatapoint.model_validate_json(message.data))
            else:
                self._add_datapoints(message, series_of(owner, key))
        except ValidationError as error:
            self._reject(message, error_text(error), 1)
        except ValueError as error:
            self._reject(message, str(error), 1)

    def _add_calculated(self, message: LaneMessage, calculated: CalculatedDatapoint) -> None:
        """Health and results of calc_rules are stored as datapoints; a staleness change is only an
        input for the rules."""
        if calculated.kind in ("stale", "fresh"):
            self.inputs.append(StalenessChange(message.at, message.seq, calculated))
            return
        value, labels = _calculated_value(calculated)
        arrival = Arrival(
            message.at, message.seq, calculated.owner, calculated.key, value, calculated.time, labels
        )
        self.inputs.append(arrival)
        self.datapoints.append(PlacedArrival(0, arrival))

    def _add_datapoints(self, message: LaneMessage, series: Series) -> None:
        limits, owner = self._limits, series.owner
        if limits and (exceeded := limits.usage.add_message(owner, message.at, len(message.data))):
            self._exceeded(message, exceeded)
            return
        datapoints, problems = read_datapoints(series.key, message.data, message.at, self._bounds)
        count = len(datapoints) + len(problems)
        if limits and (exceeded := limits.usage.add_datapoints(owner, message.at, count)):
            self._exceeded(message, exceeded)
            return
        full = limits.full.get(owner) if limits and limits.full else None
        if message.lineage:
            self.lineages[message.seq] = message.lineage
        for position, key, value, ts, labels in datapoints:
            if key.startswith(HEARTBEAT_PREFIX):
                try:
                    check_datapoint_of(key, value, labels)
                except ValueError as error:
                    problems.append(str(error))
                    continue
                arrival = Arrival(message.at, message.seq, series.owner, key, value, ts, labels)
                self.inputs.append(arrival)
                self.datapoints.append(PlacedArrival(position, arrival))
                continue
            expected = self.types.of(key)
            if expected is not None and _VALUE_KINDS[type(value)] != expected.value:
                problems.append(
                    f"the value of {key!r} is a {_VALUE_KINDS[type(value)]}: the datapoint_type {expected.name!r} "
                    f"takes a {expected.value}"
                )
                continue
            if labels and self.types.has_dimensions:
                try:
                    key = self.types.series_key(key, labels)
                except ValueError as error:
                    problems.append(str(error))
                    continue
            if full is not None and limits is not None and (reason := limits.refuse(owner, key, message.at)):
                problems.append(reason)
                continue
            arrival = Arrival(message.at, message.seq, owner, key, value, ts, labels)
            self.inputs.append(arrival)
            self.datapoints.append(PlacedArrival(position, arrival))
        if problems:
            self._reject(message, problem_summary(problems, count), len(problems))

    def _exceeded(self, message: LaneMessage, exceeded: Exceeded) -> None:
        """Only the first message of an owner and a minute becomes a dead letter."""
        if exceeded.is_first:
            self.rejected.append((message, exceeded.reason))
        self.rejected_datapoints += 1

    def _reject(self, message: LaneMessage, reason: str, datapoints: int) -> None:
        self.rejected.append((message, reason))
        self.rejected_datapoints += datapoints


class BatchLimits:
    """The limits that the messages of one batch meet."""

    def __init__(self, usage: BatchUsage) -> None:
        self.usage = usage
        self.full: dict[str, FullOwner] = {}
        self._new: dict[str, set[str]] = {}

    def refuse(self, owner: str, key: str, at: datetime) -> str | None:
        """Why an owner that has too many series may not get this one; None if it may."""
        full = self.full[owner]
        new = self._new.setdefault(owner, set())
        if key in full.keys or key in new:
            return None
        if len(new) < full.free:
            new.add(key)
            return None
        self.usage.refuse_series(owner, at, full.quota)
        quotas = self.usage.before.quotas
        if full.quota == "all_series":
            return f"{key!r} would be a new series, and there are about {quotas.all_series:,}: TOCSIN_QUOTA_ALL_SERIES"
        return (
            f"{key!r} would be a new series of {owner!r}, which has {quotas.of(owner).series:,}: use fewer keys and "
            "dimensions, or raise TOCSIN_QUOTA_SERIES or TOCSIN_QUOTAS"
        )


class QuotaWrites(Writes):
    """Keeps what the batch used, and records the quotas that it exceeded."""

    def __init__(self, usage: BatchUsage) -> None:
        self._usage = usage

    def records_to_append(self) -> NewRecords:
        return NewRecords(events=self._usage.events)

    def committed(self) -> None:
        self._usage.keep()
        for quota, count in self._usage.rejected.items():
            QUOTA_REJECTED.add(count, quota)


def _calculated_value(calculated: CalculatedDatapoint) -> tuple[Value, dict[str, str]]:
    """The value of a health or a result, and its labels."""
    data: dict[str, Any] = calculated.data
    if calculated.kind == "calc":
        return data["value"], data["labels"]
    reason = data.get("reason")
    return str(data["health"]), {} if reason is None else {"reason": str(reason)}


def _index_types(rules: RuleSet, before: TypeIndex | None) -> TypeIndex:
    return TypeIndex(rules.of(DatapointTypeDocument).values())
