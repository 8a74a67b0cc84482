"""The silences of a recording, from the events that begin and end them. Pure: no I/O.

Guarantee: a silence that ended inside the recording is known, also if it was added before: its end
carries all of it. A silence that was expired ends at that instant. A silence that began before the
recording and ended after it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from rules.replay.backtest.recording.model import RecordedEvent
from rules.replay.backtest.relevant_events import is_silence_event
from rules.suppression import Silence
from schemas.wire.silence_events import SILENCE_ENDED, silence_of_payload


def recorded_silences(events: Iterable[RecordedEvent], *, with_windows: bool) -> list[Silence]:
    """`with_windows`: also the windows of maintenances."""
    silences: dict[UUID, Silence] = {}
    for event in events:
        if not is_silence_event(event) or (is_window(event) and not with_windows):
            continue
        try:
            facts = silence_of_payload(event.payload)
        except (KeyError, TypeError, ValueError):
            continue
        ends_at = facts.ends_at
        if event.type == SILENCE_ENDED:
            ends_at = min(ends_at, event.ts)
        elif facts.id in silences:
            # Its end is known already.
            continue
        silences[facts.id] = Silence(**{**facts._asdict(), "ends_at": ends_at})
    return list(silences.values())


def is_window(event: RecordedEvent) -> bool:
    """Whether an event is about a window of a maintenance."""
    return is_silence_event(event) and str(event.payload.get("source", "")).startswith("maintenance:")
