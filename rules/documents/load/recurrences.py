"""The recurrence of a schedule or maintenance document.

Guarantee: the same document, anchor and identity always give the same recurrence. `starts_at` and
`ends_at` written as wall times are read in the timezone of the schedule (in a gap: its end; in a
fold: the first pass for `starts_at`, the second for `ends_at`, so that no fire inside the bounds is
lost).

On failure: `ScheduleInvalid`, which names the key of the document with the error.
"""

from datetime import UTC, datetime
from typing import Any

from schemas.documents import ScheduleDocument
from schemas.documents.recurrence_keys import RECURRENCE_KEYS, RecurrenceDocument
from schemas.values.duration import format_duration
from timers.natural_time import parse_when
from timers.recurrence import Recurrence, parse
from timers.recurrence.once import parse_iso
from timers.recurrence.wall_time import resolve
from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput

_ANY_INSTANT = datetime(2026, 1, 1, tzinfo=UTC)


class ScheduleInvalid(InvalidInput):
    def __init__(self, key: str, message: str) -> None:
        self.key = key
        super().__init__(message)


def recurrence_of(schedule: RecurrenceDocument, *, anchor: datetime | None, hash_id: str) -> Recurrence:
    """`anchor`: when the schedule was created; `hash_id` decides the value of `H`."""
    recurrence_key = next(key for key in RECURRENCE_KEYS if getattr(schedule, key) is not None)
    try:
        zone(schedule.tz)
    except InvalidInput as error:
        raise ScheduleInvalid("tz", str(error)) from None
    for key in ("at", "starts_at", "ends_at"):
        _refuse_phrase(key, getattr(schedule, key), schedule.tz)
    arguments = recurrence_arguments(schedule)
    try:
        recurrence = parse(**arguments, anchor=anchor, hash_id=hash_id)
    except InvalidInput as error:
        raise ScheduleInvalid(_key_of_error(schedule, str(error)) or recurrence_key, str(error)) from None
    if isinstance(schedule, ScheduleDocument):
        _check_spread(schedule, recurrence)
    return recurrence


def recurrence_arguments(schedule: RecurrenceDocument) -> dict[str, Any]:
    """The arguments for `timers.recurrence.parse`, without the anchor and the hash."""
    return {
        "cron": schedule.cron,
        "rrule": schedule.rrule,
        "every": schedule.every,
        "at": schedule.at,
        "tz": schedule.tz,
        "dst_gap": schedule.dst_gap,
        "dst_fold": schedule.dst_fold,
        "dtstart": schedule.dtstart,
        "exdates": schedule.exdates,
        "rdates": schedule.rdates,
        "starts_at": _bound(schedule, "starts_at"),
        "ends_at": _bound(schedule, "ends_at"),
        "days": schedule.days,
    }


def _refuse_phrase(key: str, text: str | None, tz: str) -> None:
    """Reject a time such as "tomorrow at 9am", whose meaning depends on when the file is read."""
    if text is None or parse_iso(text) is not None:
        return
    try:
        parse_when(text, now=_ANY_INSTANT, tz=tz)
    except InvalidInput:
        # Not a time at all: the caller says so.
        return
    raise ScheduleInvalid(
        key,
        f"{key} {text!r} depends on when it is read, and a rule file must always mean the same: write the instant "
        f"that `tocsin parse-time {text!r} --tz {tz}` prints",
    )


def _bound(schedule: RecurrenceDocument, key: str) -> datetime | None:
    text = getattr(schedule, key)
    if text is None:
        return None
    parsed = parse_iso(text)
    if parsed is None:
        raise ScheduleInvalid(
            key,
            f"{key} {text[:64]!r} is not a time: write an instant such as 2026-03-10T14:00:00Z, "
            "or a wall time in 'tz' such as 2026-03-10T14:00",
        )
    if parsed.tzinfo is not None:
        return parsed
    resolved = resolve(parsed, zone(schedule.tz))
    return (resolved.second or resolved.first) if key == "ends_at" else resolved.first


def _key_of_error(schedule: RecurrenceDocument, message: str) -> str | None:
    # The messages of `parse` start with the name of the rejected argument.
    first = message.split(" ")[0].rstrip("s,:")
    named = {
        "dtstart": "dtstart",
        "exdate": "exdates",
        "rdate": "rdates",
        "ends_at": "ends_at",
        "shift": "shift",
    }.get(first)
    return named if named and getattr(schedule, named) else None


def _check_spread(schedule: ScheduleDocument, recurrence: Recurrence) -> None:
    if schedule.spread is None:
        return
    shortest = recurrence.minimum_distance()
    if schedule.spread >= shortest:
        raise ScheduleInvalid(
            "spread",
            f"spread {format_duration(schedule.spread)} must be shorter than the shortest distance "
            f"between two fires, {format_duration(shortest)}",
        )
