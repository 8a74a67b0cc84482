"""Earlier values of a series that a rule remembers: the previous value, a window, resets of a counter.

Pure: no I/O.
"""

from __future__ import annotations

from datetime import datetime

from rules.engine.inputs import Arrival, Value
from rules.engine.rule import Rule
from rules.engine.state import RuleState, Track
from rules.engine.windows import Buckets


def track_of(rule: Rule, before: Track | None, arrival: Arrival) -> Track:
    """The track after a datapoint; called for every datapoint of a rule that needs tracks."""
    value, window = arrival.value, rule.window
    resets, fired = 0.0, ""
    buckets: Buckets = ()
    if before is not None:
        last, _, _, buckets, resets, fired, _ = before
        if (
            not isinstance(last, str)
            and not isinstance(value, str)
            and value < last
            and rule.types.is_counter(arrival.key)
        ):
            # The sum of what a counter lost by its resets.
            resets += last
    if window is None:
        return Track(value, arrival.at, arrival.ts, (), resets, fired)
    added = counted(value, resets) if window.reduce == "rate" else value
    buckets = window.add(buckets, added, arrival.at, arrival.ts)
    return Track(value, arrival.at, arrival.ts, buckets, resets, fired, arrival.labels)


def counted(value: Value, resets: float) -> Value:
    """The value of a counter as if it had never been reset."""
    return value if isinstance(value, str) or not resets else value + resets


def next_expiry(rule: Rule, state: RuleState) -> datetime | None:
    if rule.window is None or rule.reads_freshness or (rule.window_only_falls and not state.firing_series):
        return None
    expiries = [rule.window.expiry(track.buckets) for track in state.tracks.values() if track.buckets]
    return min(expiries, default=None)
