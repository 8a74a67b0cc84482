"""Maintenance documents: applied, followed from window to window, changed and removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clock.term import Term, begin_term
from rules.apply import preview
from rules.documents.load import load_text
from rules.lanes.batch import PhasedPlan
from rules.suppression.operator import expire_silence
from rules.suppression.silence_store import find_silence, list_silences, read_silences
from rules.suppression.window_lane import SilenceEnds
from schemas.wire.event import Event
from tests.clock.clock_setup import drain
from tests.records import events
from tests.rules.apply.apply_setup import T0, apply_only, event_bodies, put
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ANN = Actor("ann", "test", T0)
NIGHTLY = (
    "maintenance: {name: nightly, where: 'labels.site == \"ams\"', cron: '0 2 * * *', duration: 2h, "
    "reason: patches}"
)


class Night:
    """A clock and a record lane in virtual time."""

    def __init__(self, connection: Connection, term: Term) -> None:
        self.connection, self._term = connection, term
        self._read = 0
        self._lane = SilenceEnds()

    async def be_at(self, now: datetime, *, fire: bool = True) -> None:
        await self.connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))
        if fire:
            await drain(self._term, now)
            await self.read()

    async def read(self) -> None:
        found = [Event.model_validate_json(body) for body in await event_bodies(self.connection, self._read)]
        self._read = max((event.seq for event in found), default=self._read)
        plan = await self._lane.plan(self.connection, found)
        async with self.connection.transaction():
            await PhasedPlan([plan]).write(self.connection)

    async def windows(self) -> list[tuple[datetime, datetime]]:
        return [(row["starts_at"], row["ends_at"]) for row in await list_silences(self.connection)]


@pytest.fixture
async def night(connection: Connection) -> Night:
    night = Night(connection, await begin_term(connection, "clock"))
    await night.be_at(T0)
    return night


def _at(day: int, hour: int) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=UTC)


async def _types(connection: Connection) -> list[str]:
    return [event["type"] for event in await events(connection)]


async def test_an_apply_materialises_the_next_window(connection: Connection, night: Night) -> None:
    await put(connection, NIGHTLY, ANN)
    assert await night.windows() == [(_at(3, 2), _at(3, 4))]
    assert await _types(connection) == ["rules-applied", "silence-added"]
    added = (await events(connection))[-1]
    assert (added["payload"]["source"], added["payload"]["who"]) == ("maintenance:nightly", "ann")
    assert await read_silences(connection) == []
    await night.be_at(_at(3, 2), fire=False)
    (silence,) = await read_silences(connection)
    assert (silence.title, silence.reason) == ("maintenance nightly", "patches")


async def test_the_end_of_a_window_begins_the_next(connection: Connection, night: Night) -> None:
    await put(connection, NIGHTLY, ANN)
    await night.be_at(_at(3, 4))
    assert await night.windows() == [(_at(4, 2), _at(4, 4))]
    assert (await _types(connection))[2:] == ["silence-ended", "silence-added"]
    assert (await events(connection))[-1]["origin"] == "derived"
    await night.be_at(_at(4, 4))
    assert await night.windows() == [(_at(5, 2), _at(5, 4))]


async def test_after_an_outage_over_whole_windows_only_the_next_one_is_recorded(
    connection: Connection, night: Night
) -> None:
    await put(connection, NIGHTLY, ANN)
    await night.be_at(_at(9, 12))
    assert await night.windows() == [(_at(10, 2), _at(10, 4))]
    starts = [row["starts_at"] for row in await all_rows(connection, "select starts_at from tocsin.silence")]
    assert starts == [_at(3, 2), _at(10, 2)]


async def test_after_an_outage_into_a_window_this_window_is_in_force(
    connection: Connection, night: Night
) -> None:
    await put(connection, NIGHTLY, ANN)
    await night.be_at(_at(9, 3))
    assert await night.windows() == [(_at(9, 2), _at(9, 4))]
    assert len(await read_silences(connection)) == 1


async def test_a_document_that_is_applied_inside_its_window_takes_effect_at_once(
    connection: Connection, night: Night
) -> None:
    await put(connection, NIGHTLY.replace("0 2", "0 7"), ANN)
    assert len(await read_silences(connection)) == 1


async def test_the_same_document_again_changes_nothing(connection: Connection, night: Night) -> None:
    await put(connection, NIGHTLY, ANN)
    assert (await put(connection, NIGHTLY, ANN)).seq is None
    assert await _types(connection) == ["rules-applied", "silence-added"]


async def test_a_changed_document_replaces_its_window(connection: Connection, night: Night) -> None:
    await put(connection, NIGHTLY, ANN)
    await put(connection, NIGHTLY.replace("2h", "3h").replace("ams", "fra"), ANN)
    (row,) = await list_silences(connection)
    assert (row["matcher"], row["ends_at"]) == ('labels.site == "fra"', _at(3, 5))
    assert (await _types(connection))[2:] == ["rules-applied", "silence-ended", "silence-added"]
    await night.be_at(_at(3, 5))
    assert await night.windows() == [(_at(4, 2), _at(4, 5))]


@pytest.mark.parametrize("change", ["disabled", "removed"])
async def test_a_document_that_is_disabled_or_removed_ends_its_window(
    connection: Connection, night: Night, change: str
) -> None:
    await put(connection, NIGHTLY, ANN)
    await night.be_at(_at(3, 3))
    later = Actor("bob", "test", _at(3, 3))
    if change == "disabled":
        await put(connection, NIGHTLY.replace("duration", "enabled: false, duration"), later)
    else:
        await apply_only(connection, "action: {name: a, log: {message: m}}", later)
    assert await read_silences(connection) == []
    ended = (await events(connection))[-1]
    assert (ended["type"], ended["origin"], ended["payload"]["who"]) == ("silence-ended", "caused", "bob")
    await night.be_at(_at(9, 3))
    assert await night.windows() == []


async def test_an_operator_who_expires_a_window_ends_this_one_only(
    connection: Connection, night: Night
) -> None:
    await put(connection, NIGHTLY, ANN)
    await night.be_at(_at(3, 3))
    (row,) = await list_silences(connection)
    await expire_silence(
        connection, await find_silence(connection, str(row["id"])), Actor("bob", "cli", _at(3, 3))
    )
    assert await night.windows() == [(_at(4, 2), _at(4, 4))]
    await night.be_at(_at(4, 4))
    assert await night.windows() == [(_at(5, 2), _at(5, 4))]


async def test_an_interval_keeps_its_anchor_from_window_to_window(
    connection: Connection, night: Night
) -> None:
    await put(connection, "maintenance: {name: m, where: 'true', every: 5h, duration: 1h}", ANN)
    assert await read_silences(connection) == []
    starts = []
    for hours in (1, 6, 11):
        await night.be_at(T0 + hours * HOUR)
        starts += [begin for begin, _ in await night.windows()]
    assert starts == [T0 + 5 * HOUR, T0 + 10 * HOUR, T0 + 15 * HOUR]


async def test_windows_follow_the_clocks_of_their_zone(connection: Connection, night: Night) -> None:
    """At 02:30 in Berlin: the gap of 29 March begins the window at its end, elapsed time ends it."""
    berlin = NIGHTLY.replace("0 2", "30 2").replace("duration", "tz: Europe/Berlin, duration")
    await night.be_at(_at(28, 12))
    await put(connection, berlin, Actor("ann", "test", _at(28, 12)))
    assert await night.windows() == [(_at(29, 1), _at(29, 3))]
    await night.be_at(_at(29, 3))
    half_past = timedelta(minutes=30)
    assert await night.windows() == [(_at(30, 0) + half_past, _at(30, 2) + half_past)]


async def test_a_plan_shows_the_next_windows(connection: Connection, night: Night) -> None:
    shown = await preview(connection, load_text(NIGHTLY, anchor=T0), T0, prune=False)
    (windows,) = shown.windows.values()
    assert [window.starts_at for window in windows.windows] == [_at(3, 2), _at(4, 2), _at(5, 2)]


async def test_a_forged_end_is_passed_over(connection: Connection, night: Night) -> None:
    forged: dict[str, Any] = {"payload": '{"silence": "no id"}'}
    await connection.execute(
        "select tocsin.schedule_once('tocsin:silences', 'x', %(at)s, %(payload)s::jsonb, 'silence-ended')",
        {"at": T0, **forged},
    )
    await night.be_at(T0 + HOUR)
    assert "silence-ended" in await _types(connection)
