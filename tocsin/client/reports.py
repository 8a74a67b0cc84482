"""Reports of a service about dispatched steps, in the service's own transaction.

Guarantee: a report commits with the transaction it is made in. It returns True if it counts and
False if the step is already completed: a message that is delivered twice may be reported twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from schemas.values.json_shape import check_json_shape
from tocsin.client._call import call_function
from tocsin.core.db import Connection, statement


async def report_completed(
    connection: Connection,
    action_id: UUID,
    step: int,
    result: Mapping[str, Any] | None = None,
    *,
    token: str | None = None,
) -> bool:
    """Report success.

    `action_id`, `step` and `token` are the headers `Tocsin-Action-Id`, `Tocsin-Step` and
    `Tocsin-Report-Token`. A role with a grant for the owner of the run needs no token.
    """
    report = {"action_id": action_id, "step": step, "state": "completed", "token": token}
    return await _report(connection, report, result)


async def report_failed(
    connection: Connection,
    action_id: UUID,
    step: int,
    error: str,
    *,
    attempt: int | None = None,
    token: str | None = None,
    result: Mapping[str, Any] | None = None,
) -> bool:
    """Report a failure. The step is retried as its document says.

    `attempt` is the header `Tocsin-Attempt`: with it, a failure of an older attempt does not fail a
    newer one.
    """
    report = {
        "action_id": action_id,
        "step": step,
        "state": "failed",
        "error": error,
        "attempt": attempt,
        "token": token,
    }
    return await _report(connection, report, result)


async def _report(
    connection: Connection, report: Mapping[str, Any], result: Mapping[str, Any] | None
) -> bool:
    check_json_shape(dict(result or {}), "result")
    values = {"error": None, "attempt": None, **report, "result": Jsonb(dict(result or {}))}
    return bool(await call_function(connection, statement("tocsin.client/report"), values))
