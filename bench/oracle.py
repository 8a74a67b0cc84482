"""Compares all recurrences with the oracle, 2007 to 2037.

Every expression is compared in every zone, with every policy, at every clock change.

`run` returns the number of fires that were compared, the number of those that differ (with the
first few of them), and the next fires that a core computes per second for each kind of recurrence.
The tests run a sample.

`--zone NAME` restricts it to one zone, `--rates` measures only the rates.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.timers.recurrence import oracle
from timers.recurrence import Recurrence, parse
from timers.recurrence.zones import tz_version

_FROM = datetime(2026, 1, 1, tzinfo=UTC)
_STEPS = 20_000
# The slowest kind of cron must reach this rate on one core.
_LEAST_PER_SECOND = 8_000
_MAX_SHOWN = 10
_DAILY = "2016-01-04T09:00"
_MEASURED: dict[str, Callable[[], Recurrence]] = {
    "cron fixed": lambda: parse(cron="30 2 * * *", tz="America/New_York"),
    "cron fixed, fold both": lambda: parse(cron="30 2 * * *", tz="America/New_York", dst_fold="both"),
    "cron weekdays": lambda: parse(cron="0 8 * * MON-FRI", tz="Europe/London"),
    "cron monthly": lambda: parse(cron="0 0 L * *", tz="Europe/London"),
    "cron interval-like": lambda: parse(cron="*/5 * * * *", tz="America/New_York"),
    "every": lambda: parse(every="10s"),
    "rrule daily": lambda: parse(rrule="FREQ=DAILY", dtstart=_DAILY, tz="Europe/London"),
    "rrule weekly": lambda: parse(rrule="FREQ=WEEKLY;BYDAY=MO,WE,FR", dtstart=_DAILY, tz="Europe/London"),
    "rrule monthly setpos": lambda: parse(
        rrule="FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", dtstart=_DAILY, tz="Europe/London"
    ),
    "rrule yearly": lambda: parse(rrule="FREQ=YEARLY;BYDAY=20MO", dtstart=_DAILY, tz="Europe/London"),
    "rrule minutely with by": lambda: parse(rrule="FREQ=MINUTELY;INTERVAL=15;BYHOUR=9,10", dtstart=_DAILY),
    "rrule minutely": lambda: parse(rrule="FREQ=MINUTELY;INTERVAL=5", dtstart=_DAILY),
}


def run(arguments: list[str]) -> dict[str, object]:
    zones = [arguments[arguments.index("--zone") + 1]] if "--zone" in arguments else list(oracle.ZONES)
    per_second = rates()
    slowest_cron = min(rate for kind, rate in per_second.items() if kind.startswith("cron"))
    result: dict[str, object] = {
        "name": "oracle",
        "tz_version": tz_version(),
        "next_per_second": per_second,
        "ours": slowest_cron,
        "limit": _LEAST_PER_SECOND,
        "ratio": slowest_cron / _LEAST_PER_SECOND,
        "goal": "no different fire, and at least 8,000 next fires a second (ratio at least 1)",
    }
    if "--rates" in arguments:
        return result
    compared = different = windows = 0
    examples: list[str] = []
    expressions = [oracle.Expression(text) for text in oracle.EXPRESSIONS]
    for zone in zones:
        for change in oracle.changes(zone):
            seen = oracle.window(zone, change)
            windows += 1
            for expression in expressions:
                fires, wrong = compare(expression, seen)
                compared += fires
                different += len(wrong)
                examples += wrong[: _MAX_SHOWN - len(examples)]
    return result | {
        "expressions": len(expressions),
        "zones": len(zones),
        "policies": len(oracle.POLICIES),
        "changes_of_clocks": windows,
        "fires_compared": compared,
        "fires_different": different,
        "examples": examples,
    }


def compare(expression: oracle.Expression, seen: oracle.Window) -> tuple[int, list[str]]:
    """The number of compared fires with all policies, and a line for each that differs."""
    walls = oracle.matching(expression, seen)
    compared = 0
    wrong: list[str] = []
    for gap, fold in oracle.POLICIES:
        wanted = oracle.expected(expression, seen, walls, gap, fold)
        recurrence = parse(cron=expression.text, tz=seen.zone, dst_gap=gap, dst_fold=fold)
        fires = [occurrence.at for occurrence in recurrence.occurrences(seen.start, seen.end, 100_000)]
        compared += len(wanted)
        wrong += [
            f"{expression.text} in {seen.zone}, {gap}, {fold}: {instant.isoformat()}"
            for instant in sorted(set(wanted) ^ set(fires))
        ]
        if fires != sorted(set(fires)):
            wrong.append(f"{expression.text} in {seen.zone}, {gap}, {fold}: not strictly increasing")
    return (compared, wrong)


def rates() -> dict[str, int]:
    """Next fires per second of processor time, one after the other on one object."""
    per_second = {}
    for name, build in _MEASURED.items():
        recurrence = build()
        instant: datetime | None = _FROM
        steps = 0
        started = time.process_time()
        while instant is not None and steps < _STEPS:
            instant = recurrence.next_after(instant)
            steps += 1
        spent = timedelta(seconds=time.process_time() - started)
        per_second[name] = int(steps / max(spent.total_seconds(), 1e-9))
    return per_second
