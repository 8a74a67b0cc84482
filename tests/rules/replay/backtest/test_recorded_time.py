"""Notifications per day count the time that was recorded."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from rules.replay.backtest.recording.model import RecordedApply, RecordingHeader
from rules.replay.backtest.report.compare import compare
from rules.replay.backtest.result import BacktestResult

UNTIL = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def header(window: timedelta, recorded: timedelta) -> RecordingHeader:
    began_at = UNTIL - recorded
    applies = [RecordedApply(1, began_at, began_at)]
    return RecordingHeader(UNTIL - window, UNTIL - window, UNTIL, True, [], applies, [], [], {})


def test_a_window_that_begins_before_the_recording_does_not_dilute_its_notifications() -> None:
    """Thirty minutes of recording must not give 264 pages a day in one window and 0.4 in another."""
    result = BacktestResult()
    result.recorded_notifications = Counter({("notify:hot:ops", "hot"): 6})
    half_an_hour = timedelta(minutes=30)
    days = [
        compare(header(window, half_an_hour), result).days
        for window in (timedelta(hours=1), timedelta(days=30))
    ]
    assert days == [half_an_hour / timedelta(days=1)] * 2


def test_a_window_inside_of_the_recording_counts_as_a_whole() -> None:
    compared = compare(header(timedelta(days=2), timedelta(days=30)), BacktestResult())
    assert compared.days == 2
