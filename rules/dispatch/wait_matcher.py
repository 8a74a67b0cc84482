"""Matches events to the steps that wait for one.

Guarantee: a step is woken by the first event after the one that started its run, in the order of
the log, that meets its condition.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import structlog

from rules.language.cel import Condition, RuleIndex, compile_wait_condition
from rules.language.cel.steps import wait_activation
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()


class EventWait(NamedTuple):
    run_id: UUID
    step: int
    attempt: int
    condition: str
    after_seq: int
    trigger: Mapping[str, Any]
    """The fields `TRIGGER_FIELDS` of the event that started the run."""


class MetWait(NamedTuple):
    wait: EventWait
    event_seq: int


def match_waits(waits: Sequence[EventWait], events: Sequence[Mapping[str, Any]]) -> list[MetWait]:
    """The first event for each wait that has one. `events` are facts, in the order of `seq`."""
    index = _index(frozenset(wait.condition for wait in waits))
    waiting: dict[str, list[EventWait]] = {}
    for wait in waits:
        waiting.setdefault(wait.condition, []).append(wait)
    met: list[MetWait] = []
    for event in events:
        for condition in index.candidates(event):
            woken = [
                wait
                for wait in waiting[condition]
                if wait.after_seq < event["seq"] and _is_met(condition, wait, event)
            ]
            met += [MetWait(wait, int(event["seq"])) for wait in woken]
            waiting[condition] = [wait for wait in waiting[condition] if wait not in woken]
    return met


def types_of(condition: str) -> list[str] | None:
    """The only types of events that can meet a condition; None if any type can."""
    compiled = _condition(condition)
    if compiled is None:
        return []
    if compiled.index is None or any(variable != "type" for variable, _ in compiled.index):
        return None
    return sorted({literal for _, literal in compiled.index})


def _is_met(text: str, wait: EventWait, event: Mapping[str, Any]) -> bool:
    condition = _condition(text)
    assert condition is not None
    try:
        return condition.matches(wait_activation(event, wait.trigger))
    except InvalidInput as error:
        _log.error("event cannot be evaluated", seq=event["seq"], error=error)
        return False


@lru_cache(maxsize=64)
def _index(conditions: frozenset[str]) -> RuleIndex:
    usable = {text: _condition(text) for text in sorted(conditions)}
    return RuleIndex({text: condition for text, condition in usable.items() if condition is not None})


@lru_cache(maxsize=4_096)
def _condition(text: str) -> Condition | None:
    """The compiled condition. Conditions were checked when they were applied; one that a newer
    engine rejects is logged, and no event meets it."""
    try:
        return compile_wait_condition(text, rule="wait")
    except InvalidInput as error:
        _log.error("condition cannot be used", until_event=text, error=error)
        return None
