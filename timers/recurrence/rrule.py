"""RRULE recurrences: the dates of a rule, plus RDATEs, minus EXDATEs.

Guarantee: DAILY and coarser rules, and finer ones with BY parts, name wall times; HOURLY, MINUTELY
and SECONDLY without BY parts run on elapsed time from DTSTART. COUNT becomes UNTIL when the rule is
created, counted before EXDATEs as RFC 5545 requires; UNTIL in UTC becomes wall time then.

Why COUNT is replaced: counting from DTSTART costs more with every fire.

On failure: `InvalidInput` at creation; later, a rule without further dates returns None.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from timers.recurrence.every import Every
from timers.recurrence.occurrence import Occurrence, OccurrenceSource
from timers.recurrence.once import parse_wall
from timers.recurrence.rrule_days import times_of_day, walls
from timers.recurrence.rrule_periods import BudgetSpent
from timers.recurrence.rrule_text import RRule, parse_rule, parse_until, rrule_error
from timers.recurrence.wall_time import resolve, to_wall
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import EPOCH, MICROSECOND

_SECOND = timedelta(seconds=1)
_END = datetime.max  # noqa: DTZ901 - naive wall time
_MAX_DATES = 1000
_FARTHEST_COUNT = timedelta(days=36_600)  # a century, counted in under 100 ms
_LARGEST_WINDOW = 64
_UNITS = {"HOURLY": timedelta(hours=1), "MINUTELY": timedelta(minutes=1), "SECONDLY": _SECOND}


class RulePattern:
    """A wall pattern. It keeps a window of the last computed dates, because fires search in order."""

    __slots__ = ("_dtstart", "_exdates", "_rdates", "_rule", "_until", "_window")

    def __init__(
        self, rule: RRule, dtstart: datetime, exdates: Sequence[datetime], rdates: Sequence[datetime]
    ) -> None:
        self._rule = rule
        self._dtstart = dtstart
        self._exdates = frozenset(exdates)
        self._rdates = sorted(rdates)
        self._until = parse_until(rule.until)[0] if rule.until is not None else _END
        # (searched after, following dates, whether they are the last). Replaced as a whole, because
        # threads may share it.
        self._window: tuple[datetime, list[datetime], bool] = (_END, [], False)

    def next_wall(self, after: datetime) -> datetime | None:
        by_rule = self._next_by_rule(after)
        position = bisect_right(self._rdates, after)
        while position < len(self._rdates) and self._rdates[position] in self._exdates:
            position += 1
        if position < len(self._rdates) and (by_rule is None or self._rdates[position] < by_rule):
            return self._rdates[position]
        return by_rule

    def times_of_day(self) -> tuple[timedelta, ...]:
        extra = {wall - wall.replace(hour=0, minute=0, second=0) for wall in self._rdates}
        return tuple(sorted({*times_of_day(self._rule, self._dtstart), *extra}))

    def _next_by_rule(self, after: datetime) -> datetime | None:
        searched_after, dates, ended = self._window
        while True:
            position = bisect_right(dates, after) if searched_after <= after else len(dates)
            if position < len(dates):
                after = dates[position]
                if after > self._until:
                    return None
                if after not in self._exdates:
                    return after
            elif ended and searched_after <= after:
                return None
            else:
                in_order = bool(dates) and dates[-1] == after
                size = min(2 * len(dates), _LARGEST_WINDOW) if in_order else 2
                self._window = searched_after, dates, ended = self._compute(after, size)

    def _compute(self, after: datetime, size: int) -> tuple[datetime, list[datetime], bool]:
        dates: list[datetime] = []
        try:
            for wall in islice(walls(self._rule, self._dtstart, after), size):
                dates.append(wall)
        except BudgetSpent:
            return (after, dates, True)
        return (after, dates, len(dates) < size)


class ElapsedRule:
    """A fixed interval that ends, with excluded and added dates."""

    __slots__ = ("_every", "_exdates", "_rdates", "_until", "_zone")

    def __init__(
        self,
        every: Every,
        until: datetime | None,
        exdates: frozenset[datetime],
        rdates: list[datetime],
        tz: ZoneInfo,
    ) -> None:
        self._every = every
        self._until = until
        self._exdates = exdates
        self._rdates = rdates
        self._zone = tz

    def after(self, instant: datetime) -> Occurrence | None:
        found = self._after_in_interval(instant)
        position = bisect_right(self._rdates, instant)
        if position < len(self._rdates) and (found is None or self._rdates[position] < found.at):
            return Occurrence(self._rdates[position], None, 0, None)
        return found

    def _after_in_interval(self, instant: datetime) -> Occurrence | None:
        while (found := self._every.after(instant)) is not None:
            if self._until is not None and found.at > self._until:
                return None
            if not self._exdates or to_wall(found.at, self._zone) not in self._exdates:
                return found
            instant = found.at
        return None

    def minimum_distance(self) -> timedelta:
        shortest = self._every.minimum_distance()
        previous: datetime | None = None
        for instant in self._rdates:
            following = self._every.after(instant)
            latest = self._every.latest(datetime.min.replace(tzinfo=UTC), instant - MICROSECOND)
            others = [following.at if following else None, latest.at if latest else None, previous]
            shortest = min([shortest, *(abs(instant - other) for other in others if other is not None)])
            previous = instant
        return shortest


def canonical_rule(
    text: str,
    dtstart: str | None,
    lists: tuple[Sequence[str], Sequence[str]],
    anchor: datetime | None,
    policy: tuple[ZoneInfo, str],
) -> dict[str, object]:
    """The keys of an rrule in the specification: `rrule`, `dtstart` and its dates, if any."""
    tz, dst_fold = policy
    rule = parse_rule(text)
    start = _whole_seconds(dtstart, "dtstart") if dtstart is not None else None
    if start is None:
        start = _start_of(rule, to_wall(anchor or EPOCH, tz))
    spec: dict[str, object] = {
        "rrule": str(_without_count(text, rule, start, tz, dst_fold)),
        "dtstart": start.isoformat(),
    }
    for name, texts in zip(("exdates", "rdates"), lists, strict=True):
        if len(texts) > _MAX_DATES:
            raise InvalidInput(f"{len(texts)} {name} are too many, at most {_MAX_DATES}", remedy="use a rule")
        if texts:
            spec[name] = sorted({_whole_seconds(date, name).isoformat() for date in texts})
    return spec


def _start_of(rule: RRule, created: datetime) -> datetime:
    """The start of a rule without DTSTART: times that the rule leaves out are zero.

    So `BYHOUR=8` fires at 08:00:00, whenever the schedule was created. A rule on elapsed time counts
    from its creation, as `every` does.
    """
    if rule.runs_on_elapsed_time():
        return created.replace(microsecond=0)
    if rule.freq == "SECONDLY":
        return created.replace(microsecond=0)
    if rule.freq == "MINUTELY":
        return created.replace(second=0, microsecond=0)
    hour = created.hour if rule.freq == "HOURLY" else 0
    return created.replace(hour=hour, minute=0, second=0, microsecond=0)


def rule_pattern(text: str, spec: Mapping[str, object]) -> RulePattern | None:
    """The wall times of a rule; None for a rule on elapsed time."""
    rule = parse_rule(text)
    if rule.runs_on_elapsed_time():
        return None
    dtstart = parse_wall(str(spec["dtstart"]), "dtstart")
    return RulePattern(rule, dtstart, *(_dates(spec.get(name, ()), name) for name in ("exdates", "rdates")))


def elapsed_rule(text: str, spec: Mapping[str, object], tz: ZoneInfo) -> OccurrenceSource:
    rule = parse_rule(text)
    dst_fold = str(spec["dst_fold"])
    dtstart = parse_wall(str(spec["dtstart"]), "dtstart")
    exdates, rdates = (_dates(spec.get(name, ()), name) for name in ("exdates", "rdates"))
    every = Every(rule.interval * _UNITS[rule.freq], _to_instant(dtstart, tz, dst_fold))
    until = _until_instant(rule, tz)
    if until is None and not exdates and not rdates:
        return every
    extra = sorted({_to_instant(wall, tz, dst_fold) for wall in rdates if wall not in exdates})
    return ElapsedRule(every, until, frozenset(exdates), extra, tz)


def _without_count(text: str, rule: RRule, dtstart: datetime, tz: ZoneInfo, dst_fold: str) -> RRule:
    """The same rule without COUNT and, for wall time, without an UNTIL in UTC."""
    if rule.until is not None:
        until, is_utc = parse_until(rule.until)
        if rule.runs_on_elapsed_time():
            # A wall time may come twice. The end of elapsed time is the later of the two instants.
            instant = _until_instant(rule, tz)
            return rule.ending(None if instant is None else f"{instant:%Y%m%dT%H%M%S}Z")
        return rule.ending(f"{to_wall(until.replace(tzinfo=UTC), tz) if is_utc else until:%Y%m%dT%H%M%S}")
    if rule.count is None:
        return rule
    if rule.runs_on_elapsed_time():
        try:
            last_at = (
                _to_instant(dtstart, tz, dst_fold) + (rule.count - 1) * rule.interval * _UNITS[rule.freq]
            )
        except OverflowError:
            return rule.ending(None)  # the calendar ends before the count
        return rule.ending(f"{last_at:%Y%m%dT%H%M%S}Z")
    last = _last_counted(text, rule, dtstart)
    return rule.ending(None if last is None else f"{last:%Y%m%dT%H%M%S}")


def _last_counted(text: str, rule: RRule, dtstart: datetime) -> datetime | None:
    """The COUNT-th date; None if the calendar ends before it."""
    last = None
    counted = 0
    try:
        for wall in walls(rule, dtstart, dtstart - _SECOND):
            counted, last = counted + 1, wall
            if counted == rule.count:
                return last
            if wall - dtstart > _FARTHEST_COUNT:
                raise rrule_error(text, f"COUNT={rule.count} reaches more than a century ahead: use UNTIL")
    except BudgetSpent:
        if last is None:
            raise rrule_error(text, "it never fires: no day matches all its BY parts") from None
        return last
    return None


def _until_instant(rule: RRule, tz: ZoneInfo) -> datetime | None:
    if rule.until is None:
        return None
    until, is_utc = parse_until(rule.until)
    if is_utc:
        return until.replace(tzinfo=UTC)
    resolved = resolve(until, tz)
    return resolved.second or resolved.first


def _to_instant(wall: datetime, tz: ZoneInfo, dst_fold: str) -> datetime:
    resolved = resolve(wall, tz)
    return resolved.second if resolved.second is not None and dst_fold == "second" else resolved.first


def _dates(texts: object, what: str) -> list[datetime]:
    return [parse_wall(str(text), what) for text in texts] if isinstance(texts, (list, tuple)) else []


def _whole_seconds(text: object, what: str) -> datetime:
    wall = parse_wall(str(text), what)
    if wall.microsecond:
        raise InvalidInput(f"{what} {text!r} has a fraction of a second", remedy="write whole seconds")
    return wall
