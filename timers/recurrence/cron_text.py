"""The cron dialect: the accepted expressions, and their one plain spelling.

Guarantee: an accepted expression has five fields and one meaning. The result is plain: aliases are
expanded, and `H` is replaced by a number that depends on the schedule's name alone, so it stays the
same in every process and after every upgrade.

Why so strict: cron parsers accept much and disagree. `5-5` is every minute in one and the fifth in
another, six fields put seconds first or last, `59/15` means four different things, `*/2` in one day
field is either AND or OR with the other, as `15W` is. Rejecting such an expression when it is loaded is cheap.

On failure: `InvalidInput` that names the field, the offending part, and what to write instead.
"""

import hashlib
import re
from dataclasses import dataclass

from tocsin.core.errors import InvalidInput

MAX_CHARACTERS = 128
EVERY_ALIAS = "@every "

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_VALUE = r"([0-9]{1,2}|[a-z]{3})"
_RANGE = re.compile(rf"{_VALUE}(?:-{_VALUE})?(?:/([0-9]{{1,3}}))?")
_STAR = re.compile(r"\*(?:/([0-9]{1,3}))?")
_NTH = re.compile(rf"{_VALUE}#([0-9]+)")
_LAST_WEEKDAY = re.compile(rf"l{_VALUE}")
_NEAREST_WEEKDAY = re.compile(r"([0-9]{1,2})w")
_HASHED = re.compile(r"h(?:\(([0-9]{1,2})-([0-9]{1,2})\))?(?:/([0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class CronField:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    first_name: int = 0
    hash_high: int | None = None  # a hashed day of month must exist in every month

    @property
    def size(self) -> int:
        """The number of different values: Sunday is both 0 and 7."""
        return self.high - self.low + 1 - (self.high == 7)


FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day of month", 1, 31, hash_high=28),
    CronField("month", 1, 12, _MONTHS, 1),
    CronField("day of week", 0, 7, _WEEKDAYS, 0, hash_high=6),
)
_DAY, _WEEKDAY = 2, 4


def plain_cron(text: str, hash_id: str) -> str:
    """The checked expression: five plain lower-case fields, one space between them."""
    lowered = _ALIASES.get(text.strip().lower()) if len(text) <= MAX_CHARACTERS else None
    fields = _split(lowered if lowered is not None else text)
    plain = []
    for position, (field, part) in enumerate(zip(FIELDS, fields, strict=True)):
        resolved = _resolve_hashed(field, part, f"{hash_id}\0{position}", text)
        _check_field(position, field, resolved, text)
        plain.append(_numbered_last(field, resolved))
    _check_days(plain[_DAY], plain[_WEEKDAY], text)
    joined = " ".join(plain)
    if len(joined) > MAX_CHARACTERS:  # it could not be parsed again
        raise cron_error(
            text, f"it is longer than {MAX_CHARACTERS} characters once H is resolved: shorten its lists"
        )
    return joined


def is_interval_like(plain: str) -> bool:
    """Whether a leading `*` in minute or hour makes it an interval, as in Debian cron."""
    minute, hour = plain.split(" ")[:2]
    return minute.startswith("*") or hour.startswith("*")


def cron_error(text: str, problem: str) -> InvalidInput:
    return InvalidInput(f"cron {text[:MAX_CHARACTERS]!r}: {problem}")


def _split(text: str) -> list[str]:
    if len(text) > MAX_CHARACTERS:
        raise cron_error(
            text, f"{len(text)} characters are too many, at most {MAX_CHARACTERS}: use several schedules"
        )
    if not text.isascii() or not text.strip().isprintable():
        raise cron_error(text, "use ASCII digits, letters and spaces only")
    lowered = text.lower()
    if lowered.startswith("@"):
        known = ", ".join(_ALIASES)
        hint = (
            "start-up is not a time, use an action of your service"
            if lowered == "@reboot"
            else f"use one of {known}"
        )
        raise cron_error(text, f"unknown alias: {hint}, or '@every 10s'")
    if lowered.startswith(("tz=", "cron_tz=")):
        raise cron_error(text, "a timezone does not belong in the expression: set 'tz'")
    fields = lowered.split()
    if len(fields) in (6, 7):
        raise cron_error(
            text,
            f"{len(fields)} fields; give 5 (minute hour day-of-month month day-of-week). "
            "For less than a minute use 'every: 10s'; for years use 'starts_at' and 'ends_at'",
        )
    if len(fields) != 5:
        raise cron_error(text, f"{len(fields)} fields; give 5 (minute hour day-of-month month day-of-week)")
    return fields


def _resolve_hashed(field: CronField, part: str, seed: str, text: str) -> str:
    if "h" not in re.sub(r"[a-z]{3}", "", part):
        return part
    match = _HASHED.fullmatch(part)
    if match is None:
        raise cron_error(text, f"{part!r} in {field.name}: write H, H/15, H(0-29) or H(0-29)/10")
    low = int(match[1]) if match[1] else field.low
    high = int(match[2]) if match[2] else (field.hash_high or field.high)
    if not field.low <= low < high <= field.high:
        raise cron_error(
            text, f"{part!r} in {field.name}: the range must lie within {field.low}-{field.high}"
        )
    number = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    if match[3] is None:
        return str(low + number % (high - low + 1))
    step = int(match[3])
    if not 1 <= step <= high - low:
        raise cron_error(text, f"the step of {part!r} in {field.name} must be from 1 to {high - low}")
    return f"{low + number % step}-{high}/{step}"


def _numbered_last(field: CronField, part: str) -> str:
    """`Lmon` as `l1`, because croniter reads numbers only. Sunday is 0 there."""
    if field is not FIELDS[_WEEKDAY] or "l" not in part:
        return part
    items = [(item, _LAST_WEEKDAY.fullmatch(item)) for item in part.split(",")]
    return ",".join(item if last is None else f"l{_number(field, last[1], part) % 7}" for item, last in items)


def _check_field(position: int, field: CronField, part: str, text: str) -> None:
    for item in part.split(","):
        if position in (_DAY, _WEEKDAY) and item == "?" and part == "?":
            continue
        if (star := _STAR.fullmatch(item)) is not None:
            if part != item:
                raise cron_error(
                    text, f"{part!r} in {field.name}: '*' already covers everything, leave out the rest"
                )
            _check_step(field, item, star[1], text)
        elif not (position == _DAY and _is_day_special(item, part, text)) and not (
            position == _WEEKDAY and _is_weekday_special(field, item, part, text)
        ):
            _check_range(field, item, text)


def _check_range(field: CronField, item: str, text: str) -> None:
    match = _RANGE.fullmatch(item)
    if match is None:
        raise cron_error(text, f"{item[:32]!r} in {field.name} {_item_hint(field, item)}")
    low = _number(field, match[1], text)
    if match[2] is None:
        if match[3] is None:
            return
        if low >= field.high - (field.high == 7):
            raise cron_error(
                text,
                f"{item!r} in {field.name} starts at the last value: write '*/{match[3]}' or {match[1]!r}",
            )
        if field.high == 7:
            raise cron_error(
                text,
                f"{item!r} in {field.name}: cron dialects end it on Saturday, end it on Sunday, or count weeks. "
                f"Write '{match[1]}-6/{match[3]}', list the days, or write {match[1]!r} alone",
            )
    else:
        high = _number(field, match[2], text)
        if low == high or (field.high == 7 and low % 7 == high % 7 and (low, high) != (0, 7)):
            raise cron_error(
                text, f"{item!r} in {field.name} is an equal range: write {match[1]!r}, or '*' for all"
            )
        if low > high and match[3] is not None:
            raise cron_error(
                text, f"{item!r} in {field.name}: a range that wraps cannot have a step, write the values out"
            )
    _check_step(field, item, match[3], text)


def _check_step(field: CronField, item: str, step: str | None, text: str) -> None:
    largest = field.size - 1
    if step is not None and not 1 <= int(step) <= largest:
        raise cron_error(text, f"the step of {item!r} in {field.name} must be from 1 to {largest}")


def _number(field: CronField, value: str, text: str) -> int:
    if value.isdigit():
        number = int(value)
        if not field.low <= number <= field.high:
            raise cron_error(text, f"{value!r} in {field.name} is outside {field.low}-{field.high}")
        return number
    if value not in field.names:
        known = f", use {field.names[0]} to {field.names[-1]}" if field.names else ", use numbers"
        raise cron_error(text, f"{value!r} in {field.name} is not a name it knows{known}")
    return field.names.index(value) + field.first_name


def _is_day_special(item: str, part: str, text: str) -> bool:
    if item == "l":
        return True
    nearest = _NEAREST_WEEKDAY.fullmatch(item)
    if nearest is None:
        return False
    if part != item:
        raise cron_error(text, f"{part!r} in day of month: W stands alone, use several schedules")
    if not 1 <= int(nearest[1]) <= 28:
        raise cron_error(text, f"{item!r} in day of month: give 1W to 28W, not every month has later days")
    return True


def _is_weekday_special(field: CronField, item: str, part: str, text: str) -> bool:
    nth, last = _NTH.fullmatch(item), _LAST_WEEKDAY.fullmatch(item)
    if nth is None and last is None:
        return False
    if not all(_NTH.fullmatch(other) or _LAST_WEEKDAY.fullmatch(other) for other in part.split(",")):
        raise cron_error(
            text, f"{part!r} in day of week: do not mix plain days with '#' or 'L', use two schedules"
        )
    _number(field, (nth or last or [""])[1], text)
    if nth is not None and not 1 <= int(nth[2][:3]) <= 5:
        raise cron_error(text, f"{item!r} in day of week: the number after '#' is 1 to 5")
    return True


def _item_hint(field: CronField, item: str) -> str:
    if item == "r" or item.startswith(("r(", "r/")):
        return "is random at every start: use H, which stays the same for a schedule"
    if field.name == "day of month" and ("w" in item or item.startswith("l-") or item.endswith("-l")):
        return "is not supported: write L for the last day, or 15W for the weekday nearest the 15th"
    if field.name == "day of week" and item.endswith("l"):
        return f"is not supported: for the last one of a month write L{item[:-1] or '5'}"
    if item == "":
        return "is empty: remove the extra comma"
    if item.startswith("-"):
        return f"is negative: use {field.low}-{field.high}"
    return f"cannot be read: use {field.low}-{field.high}, ranges 1-5, lists 1,3 and steps */2"


def _check_days(day: str, weekday: str, text: str) -> None:
    """Reject day fields on which cron dialects disagree.

    Two restricted fields of plain days are OR everywhere. A starred or complete one with a restricted
    one is not, and neither are `#`, `L` and `W`: croniter requires both, cronsim either, Quartz rejects.
    """
    if "*" not in (day, weekday) and "?" not in (day, weekday) and _has_special(day, weekday):
        clock, months = " ".join(text.split()[:2]), text.split()[3]
        raise cron_error(
            text,
            f"'#', 'L' or 'W' beside another day field: cron dialects disagree whether both or either must "
            f"match. For either, use two schedules: '{clock} {day} {months} *' and "
            f"'{clock} * {months} {weekday}'. For both, use an rrule with BYDAY and BYMONTHDAY",
        )
    for part, other, name, whole in ((day, weekday, "day of month", 31), (weekday, day, "day of week", 7)):
        if other in ("*", "?") or part in ("*", "?"):
            continue
        if part.startswith("*") or _covers_all(part, whole):
            raise cron_error(
                text,
                f"{part!r} in {name} with {other!r}: cron dialects disagree whether both or either must "
                "match. Write '*' in one of the two day fields, or list the days",
            )


def _has_special(day: str, weekday: str) -> bool:
    specials = (_NTH, _LAST_WEEKDAY)
    by_weekday = any(special.fullmatch(item) for item in weekday.split(",") for special in specials)
    return by_weekday or any(item == "l" or _NEAREST_WEEKDAY.fullmatch(item) for item in day.split(","))


def _covers_all(part: str, whole: int) -> bool:
    field = FIELDS[_DAY] if whole == 31 else FIELDS[_WEEKDAY]
    covered: set[int] = set()
    for item in part.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            return False
        low = _number(field, match[1], part)
        high = _number(field, match[2], part) if match[2] else (field.high if match[3] else low)
        step = int(match[3] or 1)
        values = (
            range(low, high + 1, step)
            if low <= high
            else [*range(low, field.high + 1), *range(field.low, high + 1)]
        )
        covered.update(value % 7 if whole == 7 else value for value in values)
    return len(covered) == whole
