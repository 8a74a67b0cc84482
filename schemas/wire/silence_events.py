"""Events of silences: the one definition for commands, applies, the record lane and replays.

Guarantee: `silence-added` and `silence-ended` carry the whole silence, so that a backtest knows from
the events alone what was silenced when. A silence that ends at its time has the event of a one-shot
schedule (`origin=scheduled`); one that is ended earlier has an event with `origin=caused`.

Pure: no I/O.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from schemas.fields import MAX_REASON_LENGTH, MAX_SILENCE
from schemas.values.names import check_storable
from schemas.wire.event import Event
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text, parse_instant, utc_text
from tocsin.core.records import NewEvent

SILENCE_ADDED, SILENCE_ENDED = "silence-added", "silence-ended"
SILENCE_EVENT_TYPES = (SILENCE_ADDED, SILENCE_ENDED)
SILENCE_OWNER = "tocsin:silences"
"""Owner of the schedules and events of silences. Schedules of users cannot have it."""


class SilenceFacts(NamedTuple):
    """The facts about a silence that its events carry."""

    id: uuid.UUID
    matcher: str
    starts_at: datetime
    ends_at: datetime
    reason: str
    created_by: str
    source: str = "operator"


def silence_payload(silence: SilenceFacts) -> dict[str, Any]:
    """The payload of the events of a silence, and of the schedule of its end."""
    return {
        "silence": str(silence.id),
        "matcher": silence.matcher,
        "starts_at": instant_text(silence.starts_at),
        "ends_at": instant_text(silence.ends_at),
        "reason": silence.reason,
        "created_by": silence.created_by,
        "source": silence.source,
    }


def silence_of_payload(payload: Mapping[str, Any]) -> SilenceFacts:
    return SilenceFacts(
        uuid.UUID(payload["silence"]),
        payload["matcher"],
        parse_instant(payload["starts_at"]),
        parse_instant(payload["ends_at"]),
        payload["reason"],
        payload["created_by"],
        payload["source"],
    )


def ended_silence(event: Event) -> SilenceFacts | None:
    """The silence of a `silence-ended` event; None for any other event, and for a forged one."""
    if event.type != SILENCE_ENDED or event.owner != SILENCE_OWNER or event.origin == "external":
        return None
    try:
        return silence_of_payload(event.data)
    except (KeyError, TypeError, ValueError):
        return None


def silence_added_event(
    silence: SilenceFacts,
    at: datetime,
    *,
    who: str,
    via: str,
    origin: Literal["caused", "derived"] = "caused",
) -> NewEvent:
    return NewEvent(
        id=uuid.uuid5(silence.id, SILENCE_ADDED),
        ts=at,
        origin=origin,
        type=SILENCE_ADDED,
        payload={**silence_payload(silence), "who": who, "via": via},
        owner=SILENCE_OWNER,
    )


def silence_ended_event(silence: SilenceFacts, at: datetime, *, who: str, via: str) -> NewEvent:
    """The event of a silence that is ended before its time."""
    return NewEvent(
        id=uuid.uuid5(silence.id, SILENCE_ENDED),
        ts=at,
        origin="caused",
        type=SILENCE_ENDED,
        payload={**silence_payload(silence), "who": who, "via": via},
        owner=SILENCE_OWNER,
    )


def check_silence(now: datetime, starts_at: datetime, ends_at: datetime, reason: str) -> None:
    """Raise `InvalidInput` if a silence would end before it begins or before now, or is too long."""
    if ends_at <= now:
        raise InvalidInput(f"the silence would end in the past ({utc_text(ends_at)})", remedy="end it later")
    if ends_at <= starts_at:
        raise InvalidInput(
            f"the silence would end at {utc_text(ends_at)}, before it starts at {utc_text(starts_at)}",
            remedy="end it later, or start it earlier",
        )
    if ends_at - max(starts_at, now) > MAX_SILENCE or starts_at > now + MAX_SILENCE:
        raise InvalidInput(
            f"the silence would last until {utc_text(ends_at)}",
            remedy=f"start it within {MAX_SILENCE.days} days, and let it last {MAX_SILENCE.days} days at most",
        )
    if len(reason) > MAX_REASON_LENGTH:
        raise InvalidInput(
            f"the reason has {len(reason)} characters", remedy=f"give it at most {MAX_REASON_LENGTH}"
        )
    try:
        check_storable(reason)
    except ValueError as error:
        raise InvalidInput(f"the reason {error}") from None
