"""RRULE text: a strict parser of the KEY=VALUE parts of RFC 5545.

Guarantee: an accepted rule has known keys, once each, every number within its range, and only the
combinations that the RFC allows. `str(rule)` is its canonical text, and parsing that gives the same
rule.

Why not dateutil's parser: it accepts BYMONTH=13 and then searches to the year 9999, accepts
INTERVAL=0 and then repeats one instant forever, and takes the last of two BYDAY without a warning.

On failure: `InvalidInput` with the part, its allowed values, and the alternative.
"""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from tocsin.core.errors import InvalidInput

MAX_CHARACTERS = 1000
MAX_COUNT = 10_000
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
SUB_DAILY = ("HOURLY", "MINUTELY", "SECONDLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_MAX_INTERVAL = 1_000_000
# key -> (low, high, whether a negative number counts from the end)
_RANGES = {
    "BYMONTH": (1, 12, False),
    "BYWEEKNO": (1, 53, True),
    "BYYEARDAY": (1, 366, True),
    "BYMONTHDAY": (1, 31, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_ONLY_WITH = {"BYWEEKNO": ("YEARLY",), "BYYEARDAY": ("YEARLY", *SUB_DAILY)}
_NOT_WITH = {"BYMONTHDAY": ("WEEKLY",)}
_KEYS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_RANGES)
_OUTSIDE = {"DTSTART": "dtstart", "EXDATE": "exdates", "RDATE": "rdates", "TZID": "tz"}
_NUMBER = re.compile(r"[+-]?[0-9]{1,7}")
_DAY = re.compile(r"([+-]?[0-9]{1,2})?([A-Z]{2})")
_UNTIL = re.compile(r"([0-9]{8})(?:T([0-9]{6})(Z)?)?")


@dataclass(frozen=True, slots=True)
class RRule:
    """A parsed rule.

    `days` are (n, weekday), with n = 0 for every one; `numbers` are the other BY parts.
    """

    freq: str
    interval: int = 1
    count: int | None = None
    until: str | None = None
    wkst: int = 0
    days: tuple[tuple[int, int], ...] = ()
    numbers: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def has_by_parts(self) -> bool:
        return bool(self.days or self.numbers)

    def runs_on_elapsed_time(self) -> bool:
        return self.freq in SUB_DAILY and not self.has_by_parts()

    def ending(self, until: str | None) -> "RRule":
        return replace(self, count=None, until=until)

    def __str__(self) -> str:
        parts = [f"FREQ={self.freq}"]
        if self.interval != 1:
            parts.append(f"INTERVAL={self.interval}")
        if self.count is not None:
            parts.append(f"COUNT={self.count}")
        if self.until is not None:
            parts.append(f"UNTIL={self.until}")
        if self.wkst:
            parts.append(f"WKST={WEEKDAYS[self.wkst]}")
        if self.days:
            parts.append("BYDAY=" + ",".join(f"{turn or ''}{WEEKDAYS[day]}" for turn, day in self.days))
        for key in _RANGES:
            if key in self.numbers:
                parts.append(f"{key}={','.join(map(str, self.numbers[key]))}")
        return ";".join(parts)


def parse_rule(text: str) -> RRule:
    parts = _split(text)
    freq = parts.pop("FREQ", "")
    if freq not in FREQUENCIES:
        raise rrule_error(
            text, f"FREQ={freq or '?'} is unknown: start with FREQ= and one of {', '.join(FREQUENCIES)}"
        )
    if "COUNT" in parts and "UNTIL" in parts:
        raise rrule_error(text, "COUNT and UNTIL exclude each other: keep one")
    rule = RRule(
        freq=freq,
        interval=_positive_number(text, "INTERVAL", parts.get("INTERVAL", "1"), _MAX_INTERVAL),
        count=_positive_number(text, "COUNT", parts["COUNT"], MAX_COUNT) if "COUNT" in parts else None,
        until=_check_until(text, parts["UNTIL"]) if "UNTIL" in parts else None,
        wkst=_weekday(text, "WKST", parts.get("WKST", "MO")),
        days=_days(text, parts["BYDAY"]) if "BYDAY" in parts else (),
        numbers={key: _numbers(text, key, parts[key]) for key in _RANGES if key in parts},
    )
    _check_combination(text, rule)
    return rule


def parse_until(text: str) -> tuple[datetime, bool]:
    """The naive time, and whether it is UTC. A date alone means its last second."""
    match = _UNTIL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    # The result is naive on purpose: the flag says whether it is UTC or wall time.
    return (datetime.strptime(match[1] + (match[2] or "235959"), "%Y%m%d%H%M%S"), match[3] is not None)  # noqa: DTZ007


def rrule_error(text: str, problem: str) -> InvalidInput:
    shown = text if len(text) <= 128 else text[:128] + "..."
    return InvalidInput(f"rrule {shown!r}: {problem}")


def _split(text: str) -> dict[str, str]:
    if len(text) > MAX_CHARACTERS:
        raise rrule_error(
            text, f"{len(text)} characters are too many, at most {MAX_CHARACTERS}: use several schedules"
        )
    if not text.isascii() or not text.strip().isprintable():
        raise rrule_error(
            text, "one line of ASCII text is expected; give dtstart, exdates and rdates separately"
        )
    body = text.strip().upper().removeprefix("RRULE:").rstrip(";")
    parts: dict[str, str] = {}
    for part in body.split(";"):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise rrule_error(text, f"{part[:40]!r} is not KEY=VALUE, as in FREQ=DAILY;INTERVAL=2")
        if key in _OUTSIDE:
            raise rrule_error(text, f"{key} does not belong in the rule: set '{_OUTSIDE[key]}'")
        if key not in _KEYS:
            raise rrule_error(text, f"unknown part {key[:40]!r}: use {', '.join(_KEYS)}")
        if key in parts:
            raise rrule_error(text, f"{key} is given twice: join the values with commas")
        parts[key] = value
    return parts


def _positive_number(text: str, key: str, value: str, high: int) -> int:
    if not value.isdigit() or len(value) > 9 or not 1 <= int(value) <= high:
        advice = ", or use UNTIL" if key == "COUNT" else ""
        raise rrule_error(text, f"{key}={value[:20]} must be a number from 1 to {high}{advice}")
    return int(value)


def _numbers(text: str, key: str, value: str) -> tuple[int, ...]:
    low, high, from_end = _RANGES[key]
    numbers = set()
    for item in value.split(","):
        number = int(item) if _NUMBER.fullmatch(item) else None
        if number is None or not (low <= number <= high or (from_end and low <= -number <= high)):
            sign = f", or -{low} to -{high} from the end" if from_end else ""
            raise rrule_error(text, f"{key}={item[:20]} must be from {low} to {high}{sign}")
        numbers.add(number)
    return tuple(sorted(numbers))


def _days(text: str, value: str) -> tuple[tuple[int, int], ...]:
    days = set()
    for item in value.split(","):
        match = _DAY.fullmatch(item)
        turn = int(match[1]) if match and match[1] else 0
        if match is None or match[2] not in WEEKDAYS or abs(turn) > 53 or (match[1] and turn == 0):
            raise rrule_error(
                text, f"BYDAY={item[:20]}: use MO TU WE TH FR SA SU, with a number as in 1MO or -1FR"
            )
        days.add((turn, WEEKDAYS.index(match[2])))
    return tuple(sorted(days, key=lambda day: (day[1], day[0])))


def _weekday(text: str, key: str, value: str) -> int:
    if value not in WEEKDAYS:
        raise rrule_error(text, f"{key}={value[:20]}: use one of {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(value)


def _check_until(text: str, value: str) -> str:
    try:
        parse_until(value)
    except ValueError:
        raise rrule_error(
            text, f"UNTIL={value[:20]} is not a time: use 20261231, 20261231T235959 or ...Z for UTC"
        ) from None
    return value


def _check_combination(text: str, rule: RRule) -> None:
    if rule.freq == "SECONDLY" and rule.has_by_parts():
        raise rrule_error(
            text, "BY parts with SECONDLY are not supported: use MINUTELY with BYSECOND, or 'every'"
        )
    if "BYSETPOS" in rule.numbers and rule.freq in SUB_DAILY:
        raise rrule_error(
            text,
            f"BYSETPOS with FREQ={rule.freq} is not supported: use FREQ=DAILY with BYHOUR and BYMINUTE, "
            "or list the minutes",
        )
    for key in rule.numbers:
        if rule.freq in _NOT_WITH.get(key, ()) or rule.freq not in _ONLY_WITH.get(key, FREQUENCIES):
            raise rrule_error(text, f"{key} cannot be used with FREQ={rule.freq} (RFC 5545)")
    if "BYSETPOS" in rule.numbers and len(rule.numbers) == 1 and not rule.days:
        raise rrule_error(
            text, "BYSETPOS chooses among the results of another BY part: add BYDAY, BYMONTHDAY or another"
        )
    if rule.freq == "YEARLY" and "BYMONTHDAY" in rule.numbers and not _chooses_months(rule):
        days = ",".join(map(str, rule.numbers["BYMONTHDAY"]))
        raise rrule_error(
            text,
            "some calendars read BYMONTHDAY without BYMONTH as every month, others as the month of DTSTART: "
            f"write FREQ=MONTHLY;BYMONTHDAY={days} for every month, or add BYMONTH",
        )
    turns = [abs(turn) for turn, _ in rule.days if turn]
    if not turns:
        return
    if rule.freq not in ("YEARLY", "MONTHLY") or "BYWEEKNO" in rule.numbers:
        raise rrule_error(
            text, f"BYDAY with a number needs FREQ=MONTHLY or YEARLY without BYWEEKNO, not {rule.freq}"
        )
    if max(turns) > 5 and (rule.freq == "MONTHLY" or "BYMONTH" in rule.numbers):
        raise rrule_error(text, f"BYDAY with {max(turns)}: a month has at most 5 of each weekday")


def _chooses_months(rule: RRule) -> bool:
    return bool(rule.days) or any(key in rule.numbers for key in ("BYMONTH", "BYWEEKNO", "BYYEARDAY"))
