"""Parses the keys of a schedule into a `Recurrence`.

Guarantee: the result fires at least once, cannot hang the clock, and has a canonical specification
in which everything that depends on the moment of creation is decided: `H` is a number, `COUNT` is
an `UNTIL`, `@every` is `every`, the anchor is an instant. Equal specifications give the same
object, so their results are shared.

Why a canonical form: it is stored with the schedule, compared to see whether an edit changed
anything, and parsed again by every later process.

On failure: `InvalidInput`, in under 100 ms for any input.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from schemas.values.duration import format_duration
from timers.recurrence.cron import cron_pattern
from timers.recurrence.cron_text import EVERY_ALIAS, is_interval_like, plain_cron
from timers.recurrence.day_set import definition_text
from timers.recurrence.every import Every, parse_interval
from timers.recurrence.occurrence import OccurrenceSource
from timers.recurrence.on_days import DayFilter, canonical_days, on_days, spec_days
from timers.recurrence.once import OnceAtInstant, OneWall, parse_at, parse_iso
from timers.recurrence.recurrence import Recurrence, as_utc, bounds
from timers.recurrence.rrule import canonical_rule, elapsed_rule, rule_pattern
from timers.recurrence.wall_time import FixedTime, IntervalLike
from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import EPOCH, instant_text

_KINDS = ("cron", "rrule", "every", "at")
_GAPS = ("forward", "skip")
_FOLDS = ("first", "second", "both")
_INSTANTS = ("anchor", "starts_at", "ends_at")
_SPEC_KEYS = {*_KINDS, *_INSTANTS, "tz", "dst_gap", "dst_fold", "dtstart", "exdates", "rdates", "days"}
# The first occurrence is searched from here, so that the epoch itself, the default anchor, counts.
_SEARCH_FROM = EPOCH - timedelta(days=1)
_CACHE_SIZE = 131_072


@dataclass(frozen=True, slots=True)
class RecurrenceArguments:
    """The arguments of `parse`, hashable."""

    kind: str
    text: str
    tz: str
    dst_gap: str
    dst_fold: str
    anchor: datetime | None
    dtstart: str | None
    exdates: tuple[str, ...]
    rdates: tuple[str, ...]
    starts_at: datetime | None
    ends_at: datetime | None
    hash_id: str
    days: str
    """The canonical JSON of the calendars; empty without any."""


def parse(  # noqa: PLR0913 - one argument per key an author may write
    *,
    cron: str | None = None,
    rrule: str | None = None,
    every: str | None = None,
    at: str | None = None,
    tz: str = "UTC",
    dst_gap: str = "forward",
    dst_fold: str = "first",
    anchor: datetime | None = None,
    dtstart: str | None = None,
    exdates: Sequence[str] = (),
    rdates: Sequence[str] = (),
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    hash_id: str = "",
    days: Mapping[str, object] | None = None,
) -> Recurrence:
    """`days` has the definitions of calendars, as `timers.recurrence.on_days` describes them."""
    kinds = [
        (kind, text) for kind, text in zip(_KINDS, (cron, rrule, every, at), strict=True) if text is not None
    ]
    if len(kinds) != 1:
        named = " and ".join(kind for kind, _ in kinds) or "none of them"
        raise InvalidInput(f"a recurrence is exactly one of cron, rrule, every or at: {named} was given")
    kind, text = kinds[0]
    if isinstance(exdates, str) or isinstance(rdates, str):
        raise InvalidInput("exdates and rdates are lists of wall times", remedy="put the text in a list")
    texts = (
        (kind, text),
        ("tz", tz),
        ("dst_gap", dst_gap),
        ("dst_fold", dst_fold),
        ("dtstart", dtstart or ""),
    )
    for name, value in (
        *texts,
        *(("exdates", date) for date in exdates),
        *(("rdates", date) for date in rdates),
    ):
        if not isinstance(value, str):
            raise InvalidInput(f"{name} {str(value)[:80]!r} is not a text", remedy="put it in quotes")
    arguments = RecurrenceArguments(
        kind=kind,
        text=text,
        tz=tz,
        dst_gap=dst_gap,
        dst_fold=dst_fold,
        anchor=None if anchor is None else as_utc(anchor, "anchor"),
        dtstart=dtstart,
        exdates=tuple(exdates),
        rdates=tuple(rdates),
        starts_at=None if starts_at is None else as_utc(starts_at, "starts_at"),
        ends_at=None if ends_at is None else as_utc(ends_at, "ends_at"),
        hash_id=hash_id,
        days=_days_text(days),
    )
    return _parse_arguments(arguments)


def parse_spec(spec: Mapping[str, object]) -> Recurrence:
    """The inverse of `Recurrence.spec`, cached by content unless it is a single time.

    It does not check again that it fires: newer tz data must not make a stored one unreadable.
    """
    return _parse_single(_key(spec)) if "at" in spec else _parse_recurring(_key(spec))


@lru_cache(maxsize=_CACHE_SIZE)
def _parse_recurring(text: str) -> Recurrence:
    return _build(_canonical_key(text))


def _parse_single(text: str) -> Recurrence:
    return _build_new(_canonical_key(text))


def _canonical_key(text: str) -> str:
    """Check a specification and return the key of its canonical form."""
    spec = json.loads(text)
    unknown = sorted(set(spec) - _SPEC_KEYS)
    if unknown or len(set(spec) & set(_KINDS)) != 1:
        raise InvalidInput(
            f"{text[:200]} is not a recurrence specification", remedy="use the value of Recurrence.spec"
        )
    kind = next(kind for kind in _KINDS if kind in spec)
    arguments = RecurrenceArguments(
        kind=kind,
        text=str(spec[kind]),
        tz=str(spec.get("tz", "UTC")),
        dst_gap=str(spec.get("dst_gap", "forward")),
        dst_fold=str(spec.get("dst_fold", "first")),
        dtstart=spec.get("dtstart"),
        exdates=tuple(spec.get("exdates", ())),
        rdates=tuple(spec.get("rdates", ())),
        hash_id="",
        days=_days_text(spec.get("days")),
        **{name: _instant(spec[name]) if name in spec else None for name in _INSTANTS},
    )
    _check(arguments)
    return _key(_canonical(arguments))


@lru_cache(maxsize=_CACHE_SIZE)
def _parse_arguments(arguments: RecurrenceArguments) -> Recurrence:
    _check(arguments)
    try:
        recurrence = _build(_key(_canonical(arguments)))
    except OverflowError:
        raise InvalidInput(
            f"{arguments.kind} {arguments.text[:128]!r} leaves the calendar", remedy="check its dates"
        ) from None
    if recurrence.occurrence_after(_SEARCH_FROM) is None:
        raise InvalidInput(
            f"{recurrence.describe()} never fires",
            remedy="check its days, calendars, dst_gap, UNTIL, starts_at and ends_at",
        )
    return recurrence


def _key(spec: Mapping[str, object]) -> str:
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=_CACHE_SIZE)
def _build(key: str) -> Recurrence:
    """Build from a canonical specification. Equal recurrences are one object."""
    return _build_new(key)


def _build_new(key: str) -> Recurrence:
    spec = json.loads(key)
    instants = {name: _instant(spec[name]) for name in _INSTANTS if name in spec}
    kind = next(kind for kind in _KINDS if kind in spec)
    source = _source(kind, str(spec[kind]), spec, instants.get("anchor"))
    return Recurrence(source, spec, key, bounds(instants.get("starts_at"), instants.get("ends_at")))


def _check(arguments: RecurrenceArguments) -> None:
    zone(arguments.tz)
    if arguments.dst_gap not in _GAPS:
        raise InvalidInput(f"dst_gap {arguments.dst_gap!r} is unknown", remedy=f"use {' or '.join(_GAPS)}")
    if arguments.dst_fold not in _FOLDS:
        raise InvalidInput(f"dst_fold {arguments.dst_fold!r} is unknown", remedy=f"use {', '.join(_FOLDS)}")
    if arguments.kind != "rrule" and (arguments.dtstart is not None or arguments.exdates or arguments.rdates):
        raise InvalidInput(f"dtstart, exdates and rdates belong to an rrule, not to {arguments.kind}")
    if arguments.days and arguments.kind == "at":
        raise InvalidInput("only_in, except and shift belong to a recurrence, not to a single time ('at')")
    if (
        arguments.starts_at is not None
        and arguments.ends_at is not None
        and arguments.ends_at < arguments.starts_at
    ):
        raise InvalidInput(
            f"ends_at {instant_text(arguments.ends_at)} is before starts_at {instant_text(arguments.starts_at)}"
        )


def _days_text(days: Mapping[str, object] | None) -> str:
    canonical = canonical_days(days) if days else {}
    return definition_text(canonical) if canonical else ""


def _canonical(arguments: RecurrenceArguments) -> dict[str, object]:
    spec = _canonical_times(arguments)
    return spec | {"days": json.loads(arguments.days)} if arguments.days else spec


def _canonical_times(arguments: RecurrenceArguments) -> dict[str, object]:
    spec: dict[str, object] = {
        "tz": arguments.tz,
        "dst_gap": arguments.dst_gap,
        "dst_fold": arguments.dst_fold,
    }
    for name, instant in (("starts_at", arguments.starts_at), ("ends_at", arguments.ends_at)):
        if instant is not None:
            spec[name] = instant_text(instant)
    text = arguments.text
    if arguments.kind == "cron" and text[:64].strip().lower().startswith(EVERY_ALIAS):
        return spec | _canonical_every(text.strip()[len(EVERY_ALIAS) :].strip(), arguments.anchor)
    if arguments.kind == "cron":
        return spec | {"cron": plain_cron(text, arguments.hash_id).upper()}
    if arguments.kind == "every":
        return spec | _canonical_every(text, arguments.anchor)
    if arguments.kind == "rrule":
        lists = (arguments.exdates, arguments.rdates)
        return spec | canonical_rule(
            text, arguments.dtstart, lists, arguments.anchor, (zone(arguments.tz), arguments.dst_fold)
        )
    at = parse_at(text)
    return spec | {"at": at.isoformat() if at.tzinfo is None else instant_text(at)}


def _canonical_every(text: str, anchor: datetime | None) -> dict[str, object]:
    interval = parse_interval(text)
    return {"every": format_duration(interval), "anchor": instant_text(anchor or EPOCH)}


def _source(kind: str, text: str, spec: Mapping[str, object], anchor: datetime | None) -> OccurrenceSource:
    tz, dst_gap, dst_fold = str(spec["tz"]), str(spec["dst_gap"]), str(spec["dst_fold"])
    days = spec_days(spec)
    if kind == "cron":
        plain = text.lower()
        pattern = cron_pattern(plain)
        if is_interval_like(plain):
            _refuse_shift(days, text)
            return IntervalLike(on_days(pattern, days), tz)
        return FixedTime(on_days(pattern, days), tz, dst_gap, dst_fold)
    if kind == "rrule":
        rule = rule_pattern(text, spec)
        if rule is not None:
            return FixedTime(on_days(rule, days), tz, dst_gap, dst_fold)
    if days is not None:
        raise InvalidInput(
            f"{kind} {text[:128]!r} counts elapsed time and has no days: calendars need wall times",
            remedy="use cron, such as '*/10 * * * *', or an rrule of DAILY or coarser",
        )
    if kind == "every":
        return Every(parse_interval(text), anchor or EPOCH)
    if kind == "rrule":
        return elapsed_rule(text, spec, zone(tz))
    at = parse_at(text)
    return OnceAtInstant(at) if at.tzinfo is not None else FixedTime(OneWall(at), tz, dst_gap, dst_fold)


def _refuse_shift(days: DayFilter | None, text: str) -> None:
    if days is not None and days.shift is not None:
        raise InvalidInput(
            f"shift of cron {text.upper()!r}: it fires all day long, so nothing can be moved",
            remedy="remove shift, or fire at fixed times",
        )


def _instant(text: object) -> datetime:
    parsed = parse_iso(str(text))
    if parsed is None or parsed.tzinfo is None:
        raise InvalidInput(
            f"{text!r} is not an instant", remedy="write it with an offset, as 2026-03-10T14:00:00Z"
        )
    return parsed
