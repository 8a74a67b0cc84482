"""Adds and expires silences for operators.

Guarantee: the change, its audit row and its event (`origin=caused`) commit together or not at all.
An operator who expires the window of a maintenance ends this window; the next one follows as always.

On failure: `InvalidInput` for a matcher, a time or a reason that cannot be used, `Refused` if too
many silences are active or the silence has ended.
"""

from __future__ import annotations

from rules.language.cel import compile_matcher
from rules.suppression.silence_store import (
    MAX_ACTIVE_SILENCES,
    NewSilence,
    Row,
    arm_ends,
    count_active_silences,
    disarm_ends,
    end_silences,
    find_silence,
    following_silence,
    insert_silences,
)
from schemas.wire.silence_events import (
    SilenceFacts,
    check_silence,
    silence_added_event,
    silence_ended_event,
    silence_payload,
)
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, retrying
from tocsin.core.errors import Refused
from tocsin.core.instant import utc_text
from tocsin.core.record_log import append_events


async def add_silence(connection: Connection, silence: NewSilence, actor: Actor) -> int:
    """Add a silence and return the seq of its event."""
    compile_matcher(silence.matcher)
    check_silence(actor.now, silence.starts_at, silence.ends_at, silence.reason)

    async def once() -> int:
        async with connection.transaction():
            if await count_active_silences(connection) >= MAX_ACTIVE_SILENCES:
                raise Refused(
                    f"{MAX_ACTIVE_SILENCES} silences are active, which is the largest number",
                    remedy="expire some with `tocsin silence expire`, or write one with a wider matcher",
                )
            await arm_ends(connection, [silence])
            await insert_silences(connection, [silence], via=actor.via, now=actor.now)
            new = silence_payload(silence.facts)
            await record_audit(connection, actor, "add", "silence", str(silence.id), new=new)
            event = silence_added_event(silence.facts, actor.now, who=actor.who, via=actor.via)
            return await append_events(connection, [event])

    return await retrying(once)


async def expire_silence(connection: Connection, silence: Row, actor: Actor) -> int:
    """End a silence now and return the seq of its event."""
    facts = SilenceFacts(*(silence[name] for name in SilenceFacts._fields))

    async def once() -> int:
        async with connection.transaction():
            await disarm_ends(connection, [facts.id])
            current = await find_silence(connection, str(facts.id))
            if current["ended_at"] is not None or current["ends_at"] <= actor.now:
                ended_at = current["ended_at"] or current["ends_at"]
                raise Refused(f"silence {str(facts.id)[:8]} ended at {utc_text(ended_at)}")
            (ended,) = await end_silences(connection, [facts.id], actor.now)
            following = following_silence(ended, actor.now)
            events = [silence_ended_event(facts, actor.now, who=actor.who, via=actor.via)]
            if following is not None:
                await arm_ends(connection, [following])
                await insert_silences(connection, [following], via=actor.via, now=actor.now)
                who, via = actor.who, actor.via
                events.append(silence_added_event(following.facts, actor.now, who=who, via=via))
            old, new = silence_payload(facts), {"ended_at": actor.now.isoformat()}
            await record_audit(connection, actor, "expire", "silence", str(facts.id), old=old, new=new)
            seq = await append_events(connection, events)
            return seq - (len(events) - 1)

    return await retrying(once)
