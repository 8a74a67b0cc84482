"""Metrics of other systems: Prometheus remote_write, OTLP and the Influx line protocol.

| path | protocol | everything stored | a part rejected | try again |
|---|---|---|---|---|
| `/api/v1/write` | remote_write 1.0 | 204 | 400, which Prometheus does not repeat | 503 |
| `/otlp/v1/metrics` | OTLP/HTTP | 200 | 200 with `partial_success` | 503 |
| `/write`, `/api/v2/write` | Influx line protocol | 204 | 400 | 503 |

The valid values of a request are stored also if others are rejected. A value of an owner for which the
caller may not send data is rejected like any other wrong value.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from google.protobuf.json_format import MessageToJson
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from schemas.documents.ingest_mapping import MetricSource
from tocsin.api.access.permission import Access, Public, guarded
from tocsin.api.context import ApiContext
from tocsin.api.problems import ProblemRaised
from tocsin.api.protocols.applied_rules import AppliedRules
from tocsin.api.protocols.mappings import Mappings, applied_mappings
from tocsin.api.protocols.outbox import Rejections, send_datapoints, summary_of
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation, decide
from tocsin.protocols import influx, otlp, remote_write
from tocsin.protocols.decompress import decompress
from tocsin.protocols.placement import Placed, place_all
from tocsin.protocols.sample import ReadSamples

GROUP = "protocols"
_PROTOBUF = "application/x-protobuf"
_JSON = "application/json"


@dataclass
class ProtocolParts:
    """Shared by the routes of this package."""

    mappings: AppliedRules[Mappings] = field(default_factory=applied_mappings)
    rejections: Rejections = field(default_factory=Rejections)
    started_at: datetime | None = None


@asynccontextmanager
async def open_parts(context: ApiContext) -> AsyncIterator[ProtocolParts]:
    yield ProtocolParts()


def parts_of(access: Access) -> ProtocolParts:
    parts: ProtocolParts = access.context.parts[GROUP]
    return parts


async def ingest(
    request: Request, access: Access, source: MetricSource, body: bytes, read: ReadSamples
) -> list[str]:
    """Send what can be sent; returns the problems of the rest."""
    parts = parts_of(access)
    mappings = await parts.mappings.read(access.context)
    result = place_all(read, mappings.placements[source], mappings.types.series_key)
    allowed = _owner_check(access)
    placed = [one for one in result.placed if allowed(one)]
    refused = sorted({one.owner for one in result.placed if not allowed(one)})
    problems = result.problems + [
        f"{access.caller.name!r} may not send data for owner {owner!r}: ask an administrator for a grant"
        for owner in refused
    ]
    if placed:
        await send_datapoints(access.context, placed, body)
    if problems:
        await parts.rejections.keep(access, request.url.path, problems)
    return problems


def _owner_check(access: Access) -> Callable[[Placed], bool]:
    decided: dict[str, bool] = {}

    def is_allowed(placed: Placed) -> bool:
        if placed.owner not in decided:
            decision = decide(access.caller.principal, Operation.SEND_DATA, placed.owner)
            decided[placed.owner] = decision.allowed
        return decided[placed.owner]

    return is_allowed


async def write_prometheus(request: Request, access: Access) -> Response:
    media_type = request.headers.get("content-type", _PROTOBUF)
    if request.headers.get("content-encoding", "snappy") != "snappy" or "write.v2" in media_type:
        raise ProblemRaised(
            "wrong-type",
            "this is not remote_write 1.0",
            remedy="send prometheus.WriteRequest with snappy (the default of protobuf_message)",
        )
    body = await request.body()
    problems = await ingest(request, access, "prometheus", body, remote_write.read_write_request(body))
    if problems:
        return PlainTextResponse(f"{summary_of(problems)}\n", 400)
    return Response(status_code=204)


async def write_influx(request: Request, access: Access) -> Response:
    encoding = request.headers.get("content-encoding", "")
    body = decompress(await request.body(), encoding, influx.MAX_INFLUX_BYTES)
    precision = request.query_params.get("precision") or "ns"
    try:
        read = influx.read_lines(body, precision)
    except InvalidInput as invalid:
        return _influx_error(str(invalid))
    problems = await ingest(request, access, "influx", body, read)
    if problems:
        return _influx_error(f"partial write: {summary_of(problems)}")
    return Response(status_code=204)


def _influx_error(text: str) -> Response:
    """Clients of version 1 read `error`, those of version 2 `code` and `message`."""
    return JSONResponse({"code": "invalid", "message": text, "error": text}, 400)


async def ping_influx(request: Request) -> Response:
    return Response(status_code=204, headers={"x-influxdb-version": "1.8.10"})


async def export_otlp(request: Request, access: Access) -> Response:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (_PROTOBUF, _JSON):
        raise ProblemRaised(
            "wrong-type", f"{media_type[:80]!r} is not a type of OTLP", remedy=f"send {_PROTOBUF} or {_JSON}"
        )
    encoding = request.headers.get("content-encoding", "")
    body = decompress(await request.body(), encoding, otlp.MAX_OTLP_BYTES)
    read = otlp.read_export(body, is_json=media_type == _JSON)
    problems = await ingest(request, access, "otlp", body, read)
    answer = otlp.export_answer(len(problems), summary_of(problems))
    if media_type == _JSON:
        return Response(MessageToJson(answer, indent=None), media_type=_JSON)
    return Response(answer.SerializeToString(), media_type=_PROTOBUF)


_WRITE = Operation.SEND_DATA
ROUTES = (
    Route(
        "/api/v1/write",
        guarded(_WRITE, write_prometheus, max_body_bytes=remote_write.MAX_COMPRESSED_BYTES),
        methods=["POST"],
    ),
    Route(
        "/otlp/v1/metrics",
        guarded(_WRITE, export_otlp, max_body_bytes=otlp.MAX_OTLP_BYTES),
        methods=["POST"],
    ),
    *(
        Route(path, guarded(_WRITE, write_influx, max_body_bytes=influx.MAX_INFLUX_BYTES), methods=["POST"])
        for path in ("/write", "/api/v2/write")
    ),
    Route(
        "/ping",
        Public(ping_influx, because="clients of Influx ask for it before they send; the answer has no data"),
        methods=["GET", "HEAD"],
    ),
)
