"""The data lane, and where work joins its batches.

Guarantee: a batch is judged by the documents of one apply, the newest when it commits: if rules are applied between its
planning and its first lock, it is planned again. Messages that cannot be taken become dead letters before the batch
commits, and never hold it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple, Protocol

from nats.js.client import JetStreamContext
from pydantic import ValidationError

from rules.documents.rule_book import RuleBook, RuleSet, newest_rules
from rules.engine.inputs import Arrival
from rules.engine.types import TypeIndex
from rules.lanes.batch import PhasedPlan, Writes
from rules.lanes.data_stream import ensure_data_stream, partition_subject, sent_to
from rules.lanes.datapoint_store import Placed, StoreDatapoints, prepare_staging
from rules.lanes.dead_letters import send_dead_letter
from rules.lanes.lane import Message, Plan
from rules.lanes.rules_unchanged import SameRules
from schemas.documents.datapoint_type import DatapointTypeDocument
from schemas.refusals import refusal
from schemas.wire.calculated import CalculatedDatapoint
from schemas.wire.datapoint import Bounds, Series, read_datapoints, series_of, summary
from schemas.wire.dead_letter import dead_letter
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

_KINDS = {bool: "bool", str: "string", int: "number", float: "number"}
_BATCH = 1000
# Datapoints that are read without giving way.
_STRETCH = 500
_SENT_AT_ONCE = 100


class Verdict(NamedTuple):
    """A calculated datapoint about a series of this partition, as the record lane published it."""

    at: datetime
    seq: int
    calculated: CalculatedDatapoint


class DataBatch(NamedTuple):
    """What a transaction of the data lane is about, in stream order."""

    partition: int
    inputs: Sequence[Arrival | Verdict]
    rules_seq: int
    """The apply whose documents judge it: `RuleBook.refresh(connection, rules_seq + 1)`, then `.at(rules_seq + 1)`."""
    types: TypeIndex


class DatapointWork(Protocol):
    """What joins the batches of the data lane."""

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        """Read and decide, without a lock."""


class DataLane:
    name = "data"
    dead_letters = "datapoint"
    has_stable_sequences = False
    batch = _BATCH

    def __init__(self, settings: Settings, works: Sequence[DatapointWork] = ()) -> None:
        self.stream = settings.data_stream
        self._settings = settings
        self._works = works
        self._types: RuleBook[TypeIndex] = RuleBook(_types, DatapointTypeDocument)
        self._bounds = Bounds(
            timedelta(days=settings.datapoint_retention_d), timedelta(seconds=settings.datapoint_future_s)
        )
        self._days: set[date] = set()
        self._js: JetStreamContext | None = None

    def subject(self, partition: int) -> str:
        return partition_subject(self._settings, partition)

    async def open(self, connection: Connection, js: JetStreamContext) -> None:
        wanted = self._settings.data_partitions
        await connection.execute(statement("rules.lanes/begin_data_lane"), {"partitions": wanted})
        row = await fetch_one(connection, "rules.lanes/read_data_lane")
        assert row is not None
        if row[0] != wanted:
            raise Refused(
                f"TOCSIN_DATA_PARTITIONS={wanted}, but the data lane was made with {row[0]}",
                remedy=f"set it to {row[0]}",
            )
        await ensure_data_stream(js, self._settings, row[1] + 1)
        self._js = js

    def watermark_of(self, message: Message) -> datetime | None:
        return message.at

    async def idle_watermark(
        self, connection: Connection, position: int, stored_at: datetime | None
    ) -> datetime | None:
        return stored_at

    async def plan(self, connection: Connection, partition: int, messages: Sequence[Message]) -> Plan:
        await prepare_staging(connection)
        rules_seq = await newest_rules(connection)
        await self._types.refresh(connection, rules_seq + 1)
        opened, begun = Opened(self._types.at(rules_seq + 1), self._bounds), 0
        for message in messages:
            opened.take(message)
            if len(opened.inputs) > begun + _STRETCH:
                begun = len(opened.inputs)
                await asyncio.sleep(0)  # transactions of other partitions go on
        await self._extend({message.at.date() for message in messages}, connection)
        batch = DataBatch(partition, opened.inputs, rules_seq, opened.types)
        works = [await work.plan(connection, batch) for work in self._works]
        await self._set_aside(opened.refused)
        storing = StoreDatapoints(partition, opened.datapoints, opened.refused_datapoints)
        return PhasedPlan([SameRules(rules_seq), storing, *works])

    async def _extend(self, days: set[date], connection: Connection) -> None:
        """Partitions for the days of arrival, and one ahead: midnight must not wait for them."""
        wanted = days | {day + timedelta(days=1) for day in days}
        if wanted - self._days:
            bounds = {"first": min(wanted), "last": max(wanted)}
            await connection.execute(statement("rules.lanes/extend_datapoints"), bounds)
            self._days |= wanted

    async def _set_aside(self, refused: Sequence[tuple[Message, str]]) -> None:
        assert self._js is not None
        for begin in range(0, len(refused), _SENT_AT_ONCE):
            sending = [
                send_dead_letter(
                    self._js,
                    self._settings,
                    self.dead_letters,
                    dead_letter(reason, sent_to(self._settings, message.subject), message.at, message.data),
                    f"{self.stream}/{message.seq}",
                )
                for message, reason in refused[begin : begin + _SENT_AT_ONCE]
            ]
            await asyncio.gather(*sending)


class Opened:
    """Messages read: what they hold, and what is refused."""

    def __init__(self, types: TypeIndex, bounds: Bounds) -> None:
        self.types = types
        self.inputs: list[Arrival | Verdict] = []
        self.datapoints: list[Placed] = []
        self.refused: list[tuple[Message, str]] = []
        self.refused_datapoints = 0
        self._bounds = bounds

    def take(self, message: Message) -> None:
        _, _, _, _, owner, key = message.subject.split(".", 5)
        try:
            series = series_of(owner, key)
            if message.source_seq is not None:
                self._take_verdict(message, CalculatedDatapoint.model_validate_json(message.data))
            else:
                self._take_datapoints(message, series)
        except ValidationError as error:
            self._refuse(message, refusal(error), 1)
        except ValueError as error:
            self._refuse(message, str(error), 1)

    def _take_verdict(self, message: Message, calculated: CalculatedDatapoint) -> None:
        """The health of a system is a datapoint of its own; staleness is about a series that has its datapoints."""
        if calculated.kind != "health":
            self.inputs.append(Verdict(message.at, message.seq, calculated))
            return
        health, reason = str(calculated.data["health"]), calculated.data.get("reason")
        labels = {} if reason is None else {"reason": str(reason)}
        arrival = Arrival(
            message.at, message.seq, calculated.owner, calculated.key, health, calculated.time, labels
        )
        self.inputs.append(arrival)
        self.datapoints.append(Placed(0, arrival))

    def _take_datapoints(self, message: Message, series: Series) -> None:
        found, problems = read_datapoints(series.key, message.data, message.at, self._bounds)
        count = len(found) + len(problems)
        for place, key, value, ts, labels in found:
            expected = self.types.of(key)
            if expected is not None and _KINDS[type(value)] != expected.value:
                problems.append(
                    f"the value of {key!r} is a {_KINDS[type(value)]}: the datapoint_type {expected.name!r} "
                    f"takes a {expected.value}"
                )
                continue
            arrival = Arrival(message.at, message.seq, series.owner, key, value, ts, labels)
            self.inputs.append(arrival)
            self.datapoints.append(Placed(place, arrival))
        if problems:
            self._refuse(message, summary(problems, count), len(problems))

    def _refuse(self, message: Message, reason: str, datapoints: int) -> None:
        self.refused.append((message, reason))
        self.refused_datapoints += datapoints


def _types(rules: RuleSet, before: TypeIndex | None) -> TypeIndex:
    return TypeIndex(rules.of(DatapointTypeDocument).values())
