"""Generated requests for every operation of the document: none fails, and no answer contradicts it.

schemathesis makes the requests from docs/openapi.json, valid and invalid ones. A few for each operation, the
same in every run; `TOCSIN_TEST_API_EXAMPLES` asks for more.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, cast

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.recorded import record
from tests.api.running_api import RunningApi
from tocsin.api.app import create_api
from tocsin.core.db import Connection

_EXAMPLES = int(os.environ.get("TOCSIN_TEST_API_EXAMPLES", "4"))
_CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
# No worker runs here, so there is no stream that could store data: 503 is the right answer.
_NEEDS_A_WORKER = {
    ("POST", "/v1/events"),
    ("POST", "/v1/datapoints"),
    ("POST", "/v1/heartbeats/{name}:check-in"),
}


async def test_no_generated_request_fails_or_contradicts_the_document(
    api: RunningApi, connection: Connection
) -> None:
    await record(api, connection, "plant-7")
    _, token = await api.mint("admin:*")
    schema = schemathesis.openapi.from_dict(create_api().openapi())
    operations: list[Any] = [cast(Any, result).ok() for result in schema.get_all_operations()]
    assert len(operations) > 40
    for operation in operations:
        if (operation.method.upper(), operation.path) not in _NEEDS_A_WORKER:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                await asyncio.to_thread(_check, operation, mode, api.url, token)


def _check(operation: Any, mode: GenerationMode, url: str, token: str) -> None:
    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        if case.query and "wait" in case.query:
            case.query["wait"] = 0
        response = case.call(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60)
        case.validate_response(response, checks=_CHECKS)

    try:
        run()
    except schemathesis.errors.SchemathesisError as error:  # nothing invalid can be sent
        if mode is not GenerationMode.NEGATIVE:
            raise AssertionError(operation.label) from error
