"""Puts the content of calendars into the documents that use them.

Guarantee: a schedule, maintenance or heartbeat that is loaded has everything that its recurrence needs,
and a rule or channel everything that its `active_in` needs. The
content is part of its stored version, so the clock and every replay use the days that were in force,
and a plan shows each document that changes because a calendar does. A document that was applied
earlier and is not in the files changes with its calendar as well.

Why inside the document: a stored recurrence is read without other documents, by processes that may
have other versions of them.

On failure: problems with the place: an unknown calendar, a cycle, a wrong date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from rules.documents.load.check_series import kept_documents
from rules.documents.load.problems import RuleProblem, unknown_name
from rules.documents.load.recurrences import ScheduleInvalid, recurrence_of
from rules.documents.load.source import ReadDocuments, SourceDocument
from rules.documents.load.yaml_tree import Path
from schemas.documents import ActionRuleDocument, CalendarDocument, ChannelDocument, EventRuleDocument
from schemas.documents.active_times import ActiveTimes
from schemas.documents.calendar import WEEKDAYS
from schemas.documents.recurrence_keys import RecurrenceDocument
from timers.recurrence.active_times import parse_hours
from timers.recurrence.day_set import (
    DEEPEST,
    LARGEST_BYTES,
    DaySet,
    day_set,
    definition_text,
    nearest_day,
    parse_day,
)
from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput

WITH_ACTIVE_TIMES = (EventRuleDocument, ActionRuleDocument, ChannelDocument)
CALENDAR_USERS = (RecurrenceDocument, *WITH_ACTIVE_TIMES)
CalendarUser = TypeVar(
    "CalendarUser", bound=RecurrenceDocument | EventRuleDocument | ActionRuleDocument | ChannelDocument
)
_PARTS = ("any_of", "all_of", "none_of")
_USES = {"only_in": "only_in", "except_": "except"}
_NOTICE = timedelta(days=61)


class CalendarInvalid(InvalidInput):
    """`key` is the key of the document with the error."""

    def __init__(self, key: str, message: str) -> None:
        self.key = key
        super().__init__(message)


class Calendars:
    """The calendars that documents can name."""

    def __init__(self, documents: Iterable[CalendarDocument]) -> None:
        self._documents = {document.name: document for document in documents}
        self._definitions: dict[str, tuple[dict[str, Any], int]] = {}
        """The definition of each calendar and its size in bytes."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._documents)

    def definition(self, name: str, path: tuple[str, ...] = ()) -> dict[str, Any]:
        """The definition with the calendars that it names inside, as `timers.recurrence.day_set` reads it.

        Computed once for each calendar: copies of copies would multiply without bound.
        """
        if name not in self._definitions:
            definition = self._own(name)
            size = len(definition_text(definition))
            for key in _PARTS:
                for other in getattr(self._documents[name], key):
                    if other == name or other in path:
                        raise CalendarInvalid(key, f"contains itself: {' -> '.join((*path, name, other))}")
                    if other in self._documents:
                        definition.setdefault(key, {})[other] = self._inner(other, key, (*path, name))
                        size += self._definitions[other][1]
                    if size > LARGEST_BYTES:
                        message = f"has more than {LARGEST_BYTES:,} bytes with the calendars that it uses: "
                        raise CalendarInvalid(key, f"{message}remove past dates, or use ranges and rrules")
            self._definitions[name] = (definition, size)
        return self._definitions[name][0]

    def _own(self, name: str) -> dict[str, Any]:
        document = self._documents[name]
        definition: dict[str, Any] = {
            key: list(value) for key in ("dates", "yearly", "rrules") if (value := getattr(document, key))
        }
        if document.weekdays:
            definition["weekdays"] = sorted({WEEKDAYS.index(day) for day in document.weekdays})
        if document.dtstart is not None:
            definition["dtstart"] = document.dtstart
        return definition

    def _inner(self, name: str, key: str, path: tuple[str, ...]) -> dict[str, Any]:
        if len(path) > DEEPEST:
            raise CalendarInvalid(key, f"has calendars inside calendars deeper than {DEEPEST} levels")
        try:
            return self.definition(name, path)
        except CalendarInvalid as error:
            raise CalendarInvalid(key, str(error)) from None

    def resolve(self, document: CalendarUser) -> CalendarUser:
        """The document with the content of its calendars; calendars that do not exist are left out."""
        if isinstance(document, RecurrenceDocument):
            days = self._days(document)
            if document.shift is not None:
                days["shift"] = document.shift
            return document.model_copy(update={"days": days or None})
        times = document.active_in
        resolved = times and times.model_copy(update={"days": self._days(times) or None})
        return cast(CalendarUser, document.model_copy(update={"active_in": resolved}))

    def _days(self, document: RecurrenceDocument | ActiveTimes) -> dict[str, Any]:
        days: dict[str, Any] = {}
        for field, key in _USES.items():
            for name in getattr(document, field):
                if name in self._documents:
                    days.setdefault(key, {})[name] = self.definition(name)
        return days


def calendar_use(model: BaseModel) -> tuple[Path, RecurrenceDocument | ActiveTimes] | None:
    """What names calendars in a document, and where it is; None if it can name none."""
    if isinstance(model, RecurrenceDocument):
        return (), model
    if isinstance(model, WITH_ACTIVE_TIMES) and model.active_in is not None:
        return ("active_in",), model.active_in
    return None


def resolve_calendars(read: ReadDocuments, applied: Sequence[BaseModel]) -> list[RuleProblem]:
    """Replace the models of the documents that use calendars. Returns the problems."""
    calendars = _calendars(read, applied)
    declared = {name for kind, name in read.declared if kind == "calendar"}
    # A file that is cut short by a syntax error may contain the calendars that seem to be missing.
    names = None if read.is_cut_short else calendars.names | declared
    problems: list[RuleProblem] = []
    for document in read.documents:
        if isinstance(document.model, CalendarDocument):
            problems += _calendar_problems(document, document.model, calendars, names)
    is_sound = not problems and not read.invalid
    for index, document in enumerate(read.documents):
        model = document.model
        use = calendar_use(model)
        if use is None:
            continue
        path, user = use
        found = [*_written_days(document, path), *_unknown(document, user, names, _USES, path)]
        assert isinstance(model, CALENDAR_USERS)
        resolved: BaseModel = model
        if isinstance(user, ActiveTimes) and (wrong := list(_times_problems(document, user))):
            found += wrong
            # The checks that follow compile the rule without them.
            resolved = model.model_copy(update={"active_in": None})
        elif is_sound and not found:
            resolved = calendars.resolve(model)
        problems += found
        read.documents[index] = document._replace(validated=document.validated._replace(model=resolved))
    return problems


def changed_users(
    read: ReadDocuments, applied: Sequence[BaseModel]
) -> list[tuple[SourceDocument, BaseModel]]:
    """The documents outside of the files that change with a calendar of the files, with that calendar."""
    inside = {each.name: each for each in read.documents if isinstance(each.model, CalendarDocument)}
    if not inside:
        return []
    calendars = _calendars(read, applied)
    first = next(iter(inside.values()))
    changed: list[tuple[SourceDocument, BaseModel]] = []
    for model in kept_documents(read, applied):
        use = calendar_use(model)
        if use is not None and use[1].days is not None:
            assert isinstance(model, CALENDAR_USERS)
            resolved = calendars.resolve(model)
            if resolved != model:
                used = (*use[1].only_in, *use[1].except_)
                changed.append((next((inside[name] for name in used if name in inside), first), resolved))
    return changed


def user_problems(
    users: Sequence[tuple[SourceDocument, BaseModel]], anchor: datetime | None
) -> Iterable[RuleProblem]:
    """Recurrences that a changed calendar would end."""
    for calendar, model in users:
        if not isinstance(model, RecurrenceDocument):
            continue
        try:
            recurrence_of(model, anchor=anchor, hash_id=model.name)
        except ScheduleInvalid as error:
            message = f"{calendar.title} is used by '{model.name}', which is not in the files: {error}"
            yield calendar.problem(calendar.body.at(("name",)), message)


def calendar_warnings(
    document: SourceDocument, calendar: CalendarDocument, models: Sequence[BaseModel], now: datetime | None
) -> Iterable[RuleProblem]:
    """Days that end soon, or have ended."""
    if now is None:
        return
    today = now.date()
    if calendar.valid_until is not None:
        last = date.fromisoformat(calendar.valid_until)
        if today > last - _NOTICE:
            message = f"{document.title} is known until {last}: add the days after it, and move 'valid_until'"
            yield document.problem(document.body.at(("valid_until",)), message)
    elif nearest_day(_day_set(calendar, models), today, 1) is None:
        message = f"{document.title} has no day within ten years from now: add days, or remove it"
        yield document.problem(document.body.at(("name",)), message)


def _day_set(calendar: CalendarDocument, models: Sequence[BaseModel]) -> DaySet:
    calendars = Calendars(model for model in models if isinstance(model, CalendarDocument))
    return day_set(definition_text(calendars.definition(calendar.name)))


def _calendars(read: ReadDocuments, applied: Sequence[BaseModel]) -> Calendars:
    models = [*kept_documents(read, applied), *(document.model for document in read.documents)]
    return Calendars(model for model in models if isinstance(model, CalendarDocument))


def _calendar_problems(
    document: SourceDocument, calendar: CalendarDocument, calendars: Calendars, names: frozenset[str] | None
) -> Iterable[RuleProblem]:
    unknown = list(_unknown(document, calendar, names, {key: key for key in _PARTS}))
    yield from unknown
    for key in ("dates", "yearly", "rrules"):
        for index, text in enumerate(getattr(calendar, key)):
            try:
                day_set(definition_text({key: [text]}))
            except InvalidInput as error:
                yield document.problem(document.body.at((key, index)), f"{document.title}: {error}")
    for key in ("dtstart", "valid_until"):
        text = getattr(calendar, key)
        try:
            if text is not None and parse_day(text)[0] != parse_day(text)[1]:
                raise InvalidInput(f"{text!r} is a range", remedy="write one date")
        except InvalidInput as error:
            yield document.problem(document.body.at((key,)), f"{document.title}: '{key}' {error}")
            return
    if unknown:
        return
    try:
        calendars.definition(calendar.name)
    except CalendarInvalid as error:
        yield document.problem(document.body.at((error.key,)), f"{document.title} {error}")


def _times_problems(document: SourceDocument, times: ActiveTimes) -> Iterable[RuleProblem]:
    for index, text in enumerate(times.hours):
        try:
            parse_hours(text)
        except InvalidInput as error:
            place = document.body.at(("active_in", "hours", index))
            yield document.problem(place, f"{document.title}: {error}")
    try:
        zone(times.tz)
    except InvalidInput as error:
        yield document.problem(document.body.at(("active_in", "tz")), f"{document.title}: {error}")


def _unknown(
    document: SourceDocument,
    model: BaseModel,
    names: frozenset[str] | None,
    keys: Mapping[str, str],
    path: Path = (),
) -> Iterable[RuleProblem]:
    if names is None:
        return
    for field, key in keys.items():
        for index, name in enumerate(getattr(model, field)):
            if name not in names:
                message = unknown_name("calendar", name, document.title, names)
                yield document.problem(document.body.at((*path, key, index)), message)


def _written_days(document: SourceDocument, path: Path) -> Iterable[RuleProblem]:
    body = document.body.at(path)
    if isinstance(body.value, dict) and "days" in body.value:
        message = f"{document.title} has 'days', which is filled in when the file is loaded: remove it"
        yield document.problem(document.body.key_at((*path, "days")), message)
