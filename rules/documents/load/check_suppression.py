"""Checks of `maintenance` and `inhibit` documents: matchers, recurrences, lengths of windows.

Guarantee: a document that passes has windows and compiles. Windows of one document do not overlap:
their silences would have no end, and a mistake in the length is more likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem
from rules.documents.load.recurrences import ScheduleInvalid, recurrence_of
from rules.documents.load.source import SourceDocument
from rules.language.cel import ExpressionInvalid, compile_matcher
from schemas.documents import InhibitDocument, MaintenanceDocument
from schemas.values.duration import format_duration
from timers.recurrence import Recurrence

# Distances between windows are compared from here on if the document is checked without a database.
_EXAMPLE = datetime(2026, 1, 1, tzinfo=UTC)
_COMPARED_WINDOWS = 400
_COMPARED_TIME = timedelta(days=3660)


def suppression_problems(document: SourceDocument, anchor: datetime | None) -> Iterable[RuleProblem]:
    model: BaseModel = document.model
    if isinstance(model, InhibitDocument):
        yield from _matcher_problems(document, "source", model.source)
        yield from _matcher_problems(document, "target", model.target)
    elif isinstance(model, MaintenanceDocument):
        yield from _matcher_problems(document, "where", model.where)
        yield from _window_problems(document, model, anchor)


def _matcher_problems(document: SourceDocument, key: str, text: str) -> Iterable[RuleProblem]:
    try:
        compile_matcher(text)
    except ExpressionInvalid as invalid:
        yield from document.problems_inside((key,), invalid.errors)


def _window_problems(
    document: SourceDocument, maintenance: MaintenanceDocument, anchor: datetime | None
) -> Iterable[RuleProblem]:
    try:
        recurrence = recurrence_of(maintenance, anchor=anchor, hash_id=maintenance.name)
    except ScheduleInvalid as error:
        yield document.problem(document.body.at((error.key,)), f"{document.title}: {error}")
        return
    shortest = _shortest_distance(recurrence, maintenance.duration, anchor or _EXAMPLE)
    if maintenance.duration > shortest:
        message = (
            f"{document.title}: the duration {format_duration(maintenance.duration)} is longer than the shortest "
            f"distance between two windows, {format_duration(shortest)}: shorten it, or use fewer windows"
        )
        yield document.problem(document.body.at(("duration",)), message)


def _shortest_distance(recurrence: Recurrence, duration: timedelta, start: datetime) -> timedelta:
    """The shortest distance between two windows.

    The least distance of the recurrence is a lower bound. If the duration is longer, the windows
    themselves are compared.
    """
    least = recurrence.minimum_distance()
    if duration <= least:
        return least
    windows = recurrence.occurrences(start, start + _COMPARED_TIME, _COMPARED_WINDOWS)
    return min((later.at - earlier.at for earlier, later in pairwise(windows)), default=timedelta.max)
