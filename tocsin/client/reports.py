"""Reporting what came of a dispatched message, with the service's own work or not at all.

Guarantee: a report commits with the transaction it is made in. It answers True if it counts and False if the step is
known to be completed already: a message that is delivered twice may be reported twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from schemas.values.json_shape import check_json_shape
from tocsin.client._call import value_of
from tocsin.core.db import Connection, statement


async def report_completed(
    connection: Connection, action_id: UUID, step: int, result: Mapping[str, Any] | None = None
) -> bool:
    """`action_id` and `step` are the headers `Tocsin-Action-Id` and `Tocsin-Step` of the message."""
    return await _report(connection, {"action_id": action_id, "step": step, "state": "completed"}, result)


async def report_failed(
    connection: Connection,
    action_id: UUID,
    step: int,
    error: str,
    *,
    attempt: int | None = None,
    result: Mapping[str, Any] | None = None,
) -> bool:
    """The step is tried again as its document says. `attempt` is the header `Tocsin-Attempt`: with it, a failure of an
    older attempt does not fail a newer one."""
    said = {"action_id": action_id, "step": step, "state": "failed", "error": error, "attempt": attempt}
    return await _report(connection, said, result)


async def _report(connection: Connection, said: Mapping[str, Any], result: Mapping[str, Any] | None) -> bool:
    check_json_shape(dict(result or {}), "result")
    values = {"error": None, "attempt": None, **said, "result": Jsonb(dict(result or {}))}
    return bool(await value_of(connection, statement("tocsin.client/report"), values))
