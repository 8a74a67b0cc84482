"""Earlier values of a series that a rule remembers: the previous value, a window, resets of a counter.

Pure: no I/O.
"""

from __future__ import annotations

from datetime import datetime

from rules.engine.evaluate import increase
from rules.engine.inputs import Arrival, Value
from rules.engine.rule import Rule
from rules.engine.state import RuleState, Track
from rules.engine.windows import Buckets


def track_of(rule: Rule, before: Track | None, arrival: Arrival) -> Track:
    resets, fired = 0.0, ""
    buckets: Buckets = ()
    if before is not None:
        resets, fired, buckets = before.resets, before.fired, before.buckets
        risen = increase(rule, arrival, before)
        if risen is not None and not isinstance(before.value, str) and not isinstance(arrival.value, str):
            # The sum of what a counter lost by its resets.
            resets += risen - (arrival.value - before.value)
    track = Track(arrival.value, arrival.at, arrival.ts, (), resets, fired)
    if rule.window is None:
        return track
    value = counted(track) if rule.window.reduce == "rate" else arrival.value
    added = rule.window.add(buckets, value, arrival.at, arrival.ts)
    return track._replace(buckets=added, labels=arrival.labels)


def counted(track: Track) -> Value:
    """The value of a counter as if it had never been reset."""
    return track.value if isinstance(track.value, str) or not track.resets else track.value + track.resets


def next_expiry(rule: Rule, state: RuleState) -> datetime | None:
    if rule.window is None or rule.reads_freshness or (rule.window_only_falls and not state.firing_series):
        return None
    expiries = (rule.window.expiry(track.buckets) for track in state.tracks.values())
    return min((expiry for expiry in expiries if expiry is not None), default=None)
