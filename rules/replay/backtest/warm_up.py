"""Chooses the start of a replay: before the window, so that the causes of its alarms are replayed.

Guarantee: the warm-up is at least the longest sustain, window, cooldown and tolerance of any
document plus an hour, and at most a week. It never begins where retention has pruned: missing
datapoints would look like stale series. Alarms that were open at the start, and the last datapoint
of each series, are read from the recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from pydantic import ValidationError

from rules.replay.backtest.recording.model import DocumentVersion
from schemas.documents import CalcRuleDocument, DatapointTypeDocument, EventRuleDocument

_LEAST = timedelta(hours=1)
_MAX_WARM_UP = timedelta(days=7)


def replay_start(
    since: datetime, versions: Iterable[DocumentVersion], retained_from: Iterable[datetime | None]
) -> datetime:
    """The start of the replay of a window that begins at `since`.

    `retained_from` are the instants from which records and datapoints are complete; None if nothing
    was pruned. A window that begins before one of them is replayed from incomplete data.
    """
    limits = [instant for instant in retained_from if instant is not None and instant <= since]
    return max([since - _warm_up(versions), *limits])


def _warm_up(versions: Iterable[DocumentVersion]) -> timedelta:
    spans = (span for version in versions for span in _spans(version))
    return min(max(spans, default=_LEAST) + _LEAST, _MAX_WARM_UP)


def _spans(version: DocumentVersion) -> Iterator[timedelta]:
    with suppress(ValidationError):
        if version.kind == "datapoint_type":
            datapoint_type = DatapointTypeDocument.model_validate(version.document)
            yield datapoint_type.stale_after or _LEAST
        elif version.kind == "event_rule":
            rule = EventRuleDocument.model_validate(version.document)
            spans = (rule.for_, rule.keep_firing_for, rule.cooldown, rule.no_data_for)
            yield from (span for span in spans if span is not None)
            if rule.window is not None:
                yield rule.window.over
        elif version.kind == "calc_rule":
            calc_rule = CalcRuleDocument.model_validate(version.document)
            yield from (calc_rule.over(name) + given.offset for name, given in calc_rule.inputs.items())
