"""Schedules the inputs of a test in its world."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rules.replay.rule_tests.instants import instant
from rules.replay.rule_tests.world import World
from schemas.documents.rule_test import INPUTS, Given, expand


def schedule_input(world: World, given: Given, start: datetime) -> None:
    kind = next(key for key in INPUTS if getattr(given, key) is not None)
    _SCHEDULE[kind](world, given, instant(given.at, start))


def _series(world: World, given: Given, at: datetime) -> None:
    assert given.values is not None
    assert given.every is not None
    for number, value in enumerate(expand(given.values)):
        if value is not None:
            world.at(
                at + number * given.every,
                "arrive",
                owner=given.owner,
                key=given.series,
                value=value,
                labels=given.labels,
            )


def _event(world: World, given: Given, at: datetime) -> None:
    world.at(at, "emit", type=given.event, owner=given.owner, payload=given.payload)


def _acknowledge(world: World, given: Given, at: datetime) -> None:
    world.at(at, "acknowledge", rule=given.acknowledge, owner=given.owner, who=given.by)


def _snooze(world: World, given: Given, at: datetime) -> None:
    world.at(at, "snooze", rule=given.snooze, lasts=given.for_, owner=given.owner, who=given.by)


def _unsnooze(world: World, given: Given, at: datetime) -> None:
    world.at(at, "unsnooze", rule=given.unsnooze, owner=given.owner, who=given.by)


def _fail(world: World, given: Given, at: datetime) -> None:
    world.at(at, "fail", action=given.fail, step=given.step, times=given.times)


_SCHEDULE: dict[str, Callable[[World, Given, datetime], None]] = {
    "series": _series,
    "event": _event,
    "acknowledge": _acknowledge,
    "snooze": _snooze,
    "unsnooze": _unsnooze,
    "fail": _fail,
}
"""By the key of `given` that names the kind of the input."""
