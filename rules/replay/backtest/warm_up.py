"""How far before the window a replay begins, so that what reaches into the window is seen beginning.

Guarantee: at least the longest sustain, window, cooldown and tolerance of any document, and an hour; at most a week,
and never in what retention has dropped: that would be read as silence. What was open, or last seen, even before is
taken as a fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from pydantic import ValidationError

from rules.replay.backtest.recording.model import Version
from schemas.documents import DatapointTypeDocument, EventRuleDocument

_LEAST = timedelta(hours=1)
_MOST = timedelta(days=7)


def beginning(since: datetime, versions: Iterable[Version], kept_from: Iterable[datetime | None]) -> datetime:
    """`kept_from`: where what is left begins, if anything was dropped. A window from before then cannot be helped."""
    left = [begin for begin in kept_from if begin is not None and begin <= since]
    return max([since - _look_back(versions), *left])


def _look_back(versions: Iterable[Version]) -> timedelta:
    spans = (span for version in versions for span in _spans(version))
    return min(max(spans, default=_LEAST) + _LEAST, _MOST)


def _spans(version: Version) -> Iterator[timedelta]:
    with suppress(ValidationError):
        if version.kind == "datapoint_type":
            one = DatapointTypeDocument.model_validate(version.document)
            yield one.stale_after or _LEAST
        elif version.kind == "event_rule":
            rule = EventRuleDocument.model_validate(version.document)
            spans = (rule.for_, rule.keep_firing_for, rule.cooldown, rule.no_data_for)
            yield from (span for span in spans if span is not None)
            if rule.window is not None:
                yield rule.window.over
