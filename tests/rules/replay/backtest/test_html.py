"""The HTML report: a few alarms are drawn with their messages, many as the number at a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

from rules.replay.backtest.recording.model import AlarmTransition, RecordingHeader
from rules.replay.backtest.report.compare import compare
from rules.replay.backtest.report.html import html_report
from rules.replay.backtest.result import BacktestResult

START = datetime(2026, 10, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HEADER = RecordingHeader(START, START, START + timedelta(days=30), True, [], [], [], [], {})


def transitions(rule: str, count: int, open_for: timedelta, every: timedelta = HOUR) -> list[AlarmTransition]:
    """Alarms of as many owners, one after the other."""
    found = []
    for number in range(count):
        opened_at = START + every * (number % 700)
        payload = {"key": "dsp.a", "message": f"{rule} & {number}"}
        id = UUID(int=hash((rule, number)) % 2**128)
        for transition, at in (("opened", opened_at), ("resolved", opened_at + open_for)):
            found.append(AlarmTransition(rule, f"plant-{number}", transition, at, id, 3, payload))  # type: ignore[arg-type]
    return found


def report(then: list[AlarmTransition], now: list[AlarmTransition]) -> str:
    result = BacktestResult(recorded_transitions=then, replayed_transitions=now)
    result.sort()
    return html_report(HEADER, result, compare(HEADER, result), "prospective")


def test_a_few_alarms_are_drawn_one_by_one_with_their_messages() -> None:
    then, now = (transitions("hot", count, HOUR, every=9 * HOUR) for count in (3, 2))
    drawn = report(then, now)
    assert drawn.count("<rect class='then'") == 3
    assert drawn.count("<rect class='now'") == 2
    assert "<title>plant-0: hot &amp; 0</title>" in drawn
    assert "<path class='" not in drawn


def test_alarms_that_differ_are_drawn_then_and_now() -> None:
    drawn = report(transitions("hot", 3, HOUR), transitions("hot", 2, HOUR))
    _, _, differs = drawn.partition("<h2>What differs</h2>")
    assert "hot of plant-2" in differs
    assert "hot of plant-1<" not in differs.partition("<h2>")[0], "it is the same then and now"
    assert "What differs" not in report(transitions("hot", 2, HOUR), transitions("hot", 2, HOUR))


def test_many_alarms_are_drawn_as_the_number_at_a_time() -> None:
    drawn = report([], transitions("hot", 700, 10 * HOUR))
    ((path, most),) = re.findall(r"<path class='now' d='([^']*)'><title>at most (\d+) at a time<", drawn)
    assert 10 <= int(most) <= 12
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path)]
    assert max(heights) - min(heights) == 11, "the busiest time is as high as the strip"
    assert len(set(heights)) > 5
    assert "<rect class='now'" not in drawn


def test_the_report_of_fifty_rules_and_thousands_of_alarms_is_small() -> None:
    then = [transition for rule in range(50) for transition in transitions(f"rule-{rule}", 500, HOUR)]
    drawn = report(then, [])
    assert len(drawn) < 400_000
    assert "and 24,800 more" in drawn
    assert not re.search(r"https?://|<script|@import|url\(", drawn)
