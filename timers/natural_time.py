"""Parses times that people write: `tomorrow at 9am`, ISO texts, and Unix timestamps in seconds.

The command line and the client use it for every time that is given. `parse_when` accepts times after
`now` only. `parse_time` accepts ISO texts and Unix timestamps of the past as well.

Guarantee: the whole text matches one form of a small grammar, or it is rejected with examples. The
result is an aware UTC instant after `now`. Days and weeks keep the wall clock, hours and less are
elapsed time. A wall time that the clocks skip becomes the first instant after the gap.

Why our own grammar: the libraries guess. One reads "tomorrow at 9" as 10:30, another an ISO instant
as 20:26 today. A timer that is set wrong without notice is worse than an error, so a day without a
clock time, a past time and everything that people read in two ways are rejected with the choices:
"friday at midnight", a bare number after a date (an hour or a year), an hour from 1 to 6 without am or
pm, "next friday" in the days before a Friday. With a colon the hour is that of the 24-hour clock.
Callers show the resolved result with its zone.

On failure: `InvalidInput`.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from timers.recurrence.once import parse_iso
from timers.recurrence.wall_time import resolve, to_wall
from timers.recurrence.zones import zone
from timers.time_words import plain_words
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import EPOCH, check_aware

EXAMPLES = (
    "'in 30 minutes', 'in 1h30m', 'in 2 weeks', 'at 9am', 'tomorrow at 9am', 'tonight at 8', "
    "'friday at 3pm', 'march 10 at 2pm', 'on 2026-03-10 at 14:00', '2026-03-10T14:00:00Z' or "
    "a unix timestamp such as 1773151200"
)

_MAX_CHARACTERS = 100
_MAX_DAYS = 3660
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_UNIT = (
    r"(?:(?P<w>w|weeks?)|(?P<d>d|days?)|(?P<h>h|hrs?|hours?)|(?P<m>m|mins?|minutes?)|(?P<s>s|secs?|seconds?))"
)
_AMOUNT = re.compile(rf"(?P<number>[0-9]{{1,7}}|an?(?= )) ?{_UNIT}(?![a-z])(?:,? and |, | |)")
_CLOCK = (
    r"(?P<clock>(?:(?:half past|quarter past|quarter to) )?[0-9]{1,2}(?: ?[ap]m)?"
    r"|[0-9]{1,2}(?::[0-9]{2}){1,2}(?: ?[ap]m)?|[0-9]{4}|noon|midnight)"
)
_CLOCK_PARTS = re.compile(
    r"(?:(?P<fraction>half past|quarter past|quarter to) )?"
    r"(?P<hour>[0-9]{1,2}):?(?P<minute>[0-9]{2})?(?::(?P<second>[0-9]{2}))?(?P<meridiem> ?[ap]m)?"
)
_FRACTIONS = {"half past": 30, "quarter past": 15, "quarter to": -15}
# People who write one of these hours without am or pm mostly mean the afternoon, a 24-hour clock does not.
_UNCLEAR_HOURS = frozenset("123456")
_NAMES = {name: number for number, name in enumerate(_WEEKDAYS)} | {
    name[:3]: number for number, name in enumerate(_WEEKDAYS)
}
_MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTHS, 1)} | {
    name[:3]: number for number, name in enumerate(_MONTHS, 1)
}
_MONTH = rf"(?P<{{0}}>{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))})"
_DAY = (
    r"(?:(?P<relative>today|tonight|tomorrow|(?:the )?day after tomorrow)"
    rf"|(?P<which>next |this |on )?(?P<weekday>{'|'.join(sorted(_NAMES, key=len, reverse=True))})"
    r"|(?:on )?(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    rf"|(?:on )?{_MONTH.format('month')} (?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?(?:,? (?P<year>[0-9]{{4}}))?"
    rf"|(?:on )?(?P<day2>[0-9]{{1,2}})(?:st|nd|rd|th)? {_MONTH.format('month2')}(?: (?P<year2>[0-9]{{4}}))?)"
)
_FORMS = (
    re.compile(rf"(?P<on>{_DAY})(?:(?P<at> at)|,)? {_CLOCK}"),
    re.compile(rf"(?P<at>at )?{_CLOCK},? (?P<on>{_DAY})"),
    re.compile(
        rf"(?P<at>at) {_CLOCK}"
        r"|(?P<bare>noon|midnight|[0-9]{1,2}(?::[0-9]{2})? ?(?:am|pm)|[0-9]{1,2}:[0-9]{2})"
    ),
)
_DAY_ALONE = re.compile(_DAY)


_UNIX = re.compile(r"[0-9]{9,20}(\.[0-9]{1,9})?")
_MAX_UNIX = 253_370_764_800
"""The year 9999."""


def from_unix(seconds: float) -> datetime:
    """The instant of a Unix timestamp in seconds. `InvalidInput` if it looks like milliseconds."""
    if isinstance(seconds, bool) or not 0 <= seconds < _MAX_UNIX:
        in_ms = 1_000 * 100_000_000 <= seconds < 1_000 * _MAX_UNIX
        remedy = "it seems to be in milliseconds: divide it by 1000" if in_ms else f"write {EXAMPLES}"
        raise InvalidInput(f"{seconds} is not a unix timestamp in seconds", remedy=remedy)
    whole = int(seconds)
    return EPOCH + timedelta(seconds=whole, microseconds=round((seconds - whole) * 1_000_000))


def parse_unix(text: str) -> datetime | None:
    """The instant of a Unix timestamp in seconds, of at least nine digits; None for any other text."""
    match = _UNIX.fullmatch(text.strip()) if len(text) <= _MAX_CHARACTERS and text.isascii() else None
    if match is None:
        return None
    return from_unix(float(text) if match[1] else int(text))


def parse_absolute(text: str, tz: str) -> datetime | None:
    """The instant of an ISO text or a Unix timestamp, also of the past; None for any other text."""
    instant = parse_unix(text) or parse_iso(text)
    if instant is None or instant.tzinfo is not None:
        return instant
    return resolve(instant, zone(tz)).first


def parse_time(text: str, *, now: datetime, tz: str) -> datetime:
    """The instant of an ISO text or a Unix timestamp, or of a phrase that means a time after `now`."""
    return parse_absolute(text, tz) or parse_when(text, now=now, tz=tz)


def parse_when(text: str, *, now: datetime, tz: str) -> datetime:
    check_aware(now, "now")
    if not isinstance(text, str) or len(text) > _MAX_CHARACTERS or not text.isascii():
        raise InvalidInput(f"{str(text)[:_MAX_CHARACTERS]!r} is not a time", remedy=f"write {EXAMPLES}")
    tz_info = zone(tz)
    words = plain_words(text)
    try:
        instant = _read(words, now.astimezone(UTC), tz_info)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{text!r} is not a time in the calendar", remedy=f"write {EXAMPLES}") from None
    if instant is None:
        raise InvalidInput(f"{text!r} is not a time that tocsin understands", remedy=_hint(words))
    if instant <= now:
        shown = instant.astimezone(tz_info)
        raise InvalidInput(
            f"{text!r} is in the past ({shown:%Y-%m-%d %H:%M} {tz})", remedy="give a time after now"
        )
    return instant


def _read(words: str, now: datetime, tz_info: ZoneInfo) -> datetime | None:
    unix = parse_unix(words)
    if unix is not None:
        return unix
    iso = parse_iso(words)
    if iso is not None:
        return iso if iso.tzinfo is not None else _to_instant(iso, now, tz_info)
    if words.startswith("in "):
        return _read_distance(words[3:], now, tz_info)
    if _DAY_ALONE.fullmatch(words):
        return None
    for form in _FORMS:
        match = form.fullmatch(words)
        if match is not None:
            groups = match.groupdict()
            clock = groups["clock"] or groups["bare"]
            if clock.isdigit() and not groups["at"]:
                raise InvalidInput(
                    f"the number {clock!r} beside a day may be an hour or a year",
                    remedy=f"write '{groups['on']} at {clock}', or the hour with am, pm or a colon",
                )
            return _earliest_after(now, tz_info, _candidates(groups, clock, to_wall(now, tz_info)))
    return None


def _read_distance(words: str, now: datetime, tz_info: ZoneInfo) -> datetime | None:
    if words in ("half an hour", "half a day"):
        return now + timedelta(minutes=30 if words.endswith("hour") else 12 * 60)
    amounts: dict[str, int] = {}
    position = 0
    while position < len(words):
        match = _AMOUNT.match(words, position)
        if match is None:
            return None
        letter = next(letter for letter in _UNITS if match[letter] is not None)
        if any(list(_UNITS).index(letter) <= list(_UNITS).index(earlier) for earlier in amounts):
            return None  # each unit once, the largest first
        amounts[letter] = int(match["number"]) if match["number"].isdigit() else 1
        position = match.end()
    if not amounts or words.endswith((",", " ", "and")):
        return None
    days = timedelta(weeks=amounts.get("w", 0), days=amounts.get("d", 0))
    elapsed = timedelta(
        **{_UNITS[letter]: amount for letter, amount in amounts.items() if letter not in "wd"}
    )
    if days + elapsed > timedelta(days=_MAX_DAYS):
        raise InvalidInput(f"'in {words}' is too far away: at most {_MAX_DAYS} days")
    if days:
        now = _to_instant(to_wall(now, tz_info) + days, now, tz_info)
    return now + elapsed


def _candidates(groups: dict[str, str | None], clock: str, today: datetime) -> Iterator[datetime]:
    """The wall times that the words may mean, earliest first. The first one after now is meant."""
    if clock == "midnight":
        if groups.get("relative") not in ("today", "tonight") and _names_day(groups):
            raise InvalidInput(
                "midnight of a day is ambiguous, its start or its end", remedy="write the date and 00:00"
            )
        yield datetime.combine(today.date() + timedelta(days=1), time())
        return
    tonight = groups.get("relative") == "tonight"
    if not tonight and clock.split(" ")[-1] in _UNCLEAR_HOURS:
        exact = f" or 0{clock}:00" if clock.isdigit() else ""
        joint = "," if exact else " or"
        raise InvalidInput(
            f"{clock!r} may be in the morning or in the afternoon",
            remedy=f"write {clock}am{joint} {clock}pm{exact}",
        )
    at = _clock_time(clock, tonight=tonight)
    if groups.get("which") == "next ":
        _check_next(str(groups["weekday"]), clock, today.date())
    for day in _days(groups, today.date()):
        yield datetime.combine(day, at)


def _check_next(weekday: str, clock: str, today: date) -> None:
    """Reject "next friday" where it may be the coming one or the one of the week after."""
    ahead = (_NAMES[weekday] - today.weekday()) % 7
    if ahead and today.weekday() + ahead < 7:
        coming = today + timedelta(days=ahead)
        raise InvalidInput(
            f"'next {weekday}' may be {coming} or {coming + timedelta(days=7)}",
            remedy=f"write '{weekday} at {clock}' for {coming}, or '{coming + timedelta(days=7)} at {clock}'",
        )


def _names_day(groups: dict[str, str | None]) -> bool:
    return any(groups.get(name) for name in ("relative", "weekday", "iso", "month", "month2"))


def _days(groups: dict[str, str | None], today: date) -> Iterator[date]:
    relative, weekday = groups.get("relative"), groups.get("weekday")
    if relative is not None:
        ahead = 2 if relative.endswith("after tomorrow") else int(relative == "tomorrow")
        yield today + timedelta(days=ahead)
    elif weekday is not None:
        ahead = (_NAMES[weekday] - today.weekday()) % 7
        if ahead or groups["which"] != "next ":
            yield today + timedelta(days=ahead)
        yield today + timedelta(days=ahead + 7)
    elif groups.get("iso") is not None:
        yield date.fromisoformat(str(groups["iso"]))
    elif groups.get("month") or groups.get("month2"):
        yield from _dates(groups, today)
    else:
        yield today
        yield today + timedelta(days=1)


def _dates(groups: dict[str, str | None], today: date) -> Iterator[date]:
    month = _MONTH_NUMBERS[str(groups["month"] or groups["month2"])]
    day = int(str(groups["day"] or groups["day2"]))
    year = groups["year"] or groups["year2"]
    if year is not None:
        yield date(int(year), month, day)
        return
    exists = False
    for candidate in range(today.year, today.year + 9):
        try:
            dated = date(candidate, month, day)
        except ValueError:
            continue  # 29 February, or no such day in any year
        exists = True
        yield dated
    if not exists:
        raise ValueError(f"{month}-{day}")


def _clock_time(clock: str, *, tonight: bool) -> time:
    if clock == "noon" and not tonight:
        return time(12)
    match = _CLOCK_PARTS.fullmatch(clock)
    if match is None:
        raise ValueError(clock)
    hour, minute, second = int(match["hour"]), int(match["minute"] or 0), int(match["second"] or 0)
    if match["meridiem"] is not None or match["fraction"] is not None:
        if not 1 <= hour <= 12:
            raise InvalidInput(f"{clock!r} is not a clock time: the hour is 1 to 12 here")
        if match["meridiem"] is not None:
            hour = hour % 12 + (12 if match["meridiem"].endswith("pm") else 0)
    if match["meridiem"] is None and tonight and 1 <= hour < 12:
        hour += 12
    if match["fraction"] is not None:
        hour, minute = divmod(60 * hour + _FRACTIONS[match["fraction"]], 60)
    if tonight and not 17 <= hour <= 23:
        raise InvalidInput(
            f"{clock!r} is not tonight", remedy="give a time from 5pm to 11:59pm, or a day and a clock time"
        )
    if hour > 23 or minute > 59 or second > 59:
        raise InvalidInput(f"{clock!r} is not a clock time", remedy="use 00:00 to 23:59, or 9am")
    return time(hour, minute, second)


def _earliest_after(now: datetime, tz_info: ZoneInfo, walls: Iterator[datetime]) -> datetime | None:
    instant = None
    for wall in walls:
        instant = _to_instant(wall, now, tz_info)
        if instant > now:
            break
    return instant


def _to_instant(wall: datetime, now: datetime, tz_info: ZoneInfo) -> datetime:
    resolved = resolve(wall, tz_info)
    if resolved.second is not None and resolved.first <= now:
        return resolved.second
    return resolved.first


def _hint(words: str) -> str:
    if _DAY_ALONE.fullmatch(words):
        return f"a day needs a clock time, as in '{words} at 9am'"
    if re.search(r"\b(months?|years?)\b", words):
        return "months and years differ in length, write weeks, days or a date"
    if re.search(r"\b(est|edt|pst|pdt|cst|cdt|gmt|bst|cet|cest)\b", words):
        return "zone abbreviations are ambiguous, give the timezone separately"
    return f"write {EXAMPLES}"
