"""Retries a failed timer for `tocsin timers retry`: it is due at once, and its failures are reset.

Guarantee: nothing else about the timer changes, so it fires what it would have fired (a late tick
by its `catch_up`). The audit row has the actor and the previous error. A timer that fails again is
delayed again.

On failure: `Refused` if there is no such timer, several, or one that has not failed.
"""

from __future__ import annotations

from typing import Any

from timers.working_set import check_kind
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, fetch_dicts, fetch_one
from tocsin.core.errors import Refused
from tocsin.core.instant import utc_text


async def retry_timer(connection: Connection, kind: str, ref: str, key: str, actor: Actor) -> dict[str, Any]:
    """Retry a timer and return it as it was.

    `ref` may be the name of a schedule for a `schedule-tick`.
    """
    check_kind(kind)
    async with connection.transaction():
        key_columns = {"kind": kind, "ref": ref, "key": key}
        timer = _only(await fetch_dicts(connection, "timers/find_failed_timers", key_columns), kind, ref, key)
        named = {name: timer[name] for name in ("kind", "ref", "key")}
        if await fetch_one(connection, "timers/retry_timer", {**named, "now": actor.now}) is None:
            raise Refused(
                f"{kind} {ref!r} has not failed, it is due at {utc_text(timer['fire_at'])}: "
                "there is nothing to retry"
            )
        await _audit(connection, timer, actor)
    return timer


def _only(rows: list[dict[str, Any]], kind: str, ref: str, key: str) -> dict[str, Any]:
    if not rows:
        of_key = f" with the key {key!r}" if key else ""
        raise Refused(
            f"there is no {kind} {ref!r}{of_key}", remedy="`tocsin timers --parked --json` lists them"
        )
    if len(rows) > 1:
        choices = ", ".join(f"{row['ref']} (owner {row['owner']!r})" for row in rows)
        raise Refused(f"several schedules are called {ref!r}", remedy=f"give the ref of one: {choices}")
    return rows[0]


async def _audit(connection: Connection, timer: dict[str, Any], actor: Actor) -> None:
    key = "/".join(part for part in (timer["kind"], timer["ref"], timer["key"]) if part)
    old = {
        "attempts": timer["attempts"],
        "last_error": timer["last_error"],
        "parked_at": timer["parked_at"] and timer["parked_at"].isoformat(),
        "fire_at": timer["fire_at"].isoformat(),
    }
    new = {"attempts": 0, "last_error": None, "parked_at": None, "fire_at": actor.now.isoformat()}
    await record_audit(
        connection,
        actor,
        "retry",
        "timer",
        timer["name"] or key,
        owner=timer["owner"] or "",
        old=old,
        new=new,
    )
