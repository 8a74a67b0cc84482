"""`/ping/...`: check-ins by the pings of healthchecks, for clients that exist in every language.

`/ping/TOKEN` pings the one heartbeat whose owner the token may send data for, and
`/ping/TOKEN/NAME` one of several. `/start`, `/fail`, `/log` or an exit code may follow.

Guarantee: the answer is `OK` when JetStream has stored the check-in, so a client that repeats a request
without an answer loses nothing. A request that is repeated within two minutes with the same `rid` and
action is one check-in. The token is in the path, because these clients send no headers; it appears in no
log of the API.

On failure the status is what clients of healthchecks know: 400 for a wrong path or `rid`, 404 for a token
or a heartbeat that does not exist, 409 for a name that several heartbeats have, 429 beyond `ping_rates.MAX_PINGS` in a
minute, and 503, which they repeat.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rules.documents.rule_book import RuleSet
from schemas.documents import HeartbeatDocument
from schemas.wire.check_in import check_in_datapoints, log_key, log_tail
from schemas.wire.subjects import datapoint_subject
from tocsin.api.access.path_token import authenticate_by_path
from tocsin.api.access.permission import Access, Guarded
from tocsin.api.context import ApiContext
from tocsin.api.limits import allow_body
from tocsin.api.protocols.applied_rules import AppliedRules
from tocsin.api.protocols.created_heartbeats import create_heartbeat
from tocsin.api.protocols.outbox import publish
from tocsin.api.protocols.ping_rates import PingRates
from tocsin.core.errors import Forbidden, InvalidInput, Unauthenticated
from tocsin.policy import Operation, decide
from tocsin.protocols.pings import BODY_LIMIT, Ping, PingRejected, is_action, output_of, read_ping

GROUP = "pings"
_MAX_BODY_BYTES = 1_000_000
_HEADERS = {
    "ping-body-limit": str(BODY_LIMIT),
    "access-control-allow-origin": "*",
    "cache-control": "no-store",
}


class ExpectedHeartbeat(NamedTuple):
    name: str
    owner: str


Expected = tuple[ExpectedHeartbeat, ...]


def _compile(documents: RuleSet, _: Expected | None = None) -> Expected:
    heartbeats = documents.of(HeartbeatDocument).values()
    return tuple(ExpectedHeartbeat(one.name, owner) for one in heartbeats for owner in one.expected_owners)


def _applied_heartbeats() -> AppliedRules[Expected]:
    return AppliedRules(_compile, HeartbeatDocument)


@dataclass
class PingParts:
    heartbeats: AppliedRules[Expected] = field(default_factory=_applied_heartbeats)
    rates: PingRates = field(default_factory=PingRates)


@asynccontextmanager
async def open_parts(context: ApiContext) -> AsyncIterator[PingParts]:
    yield PingParts()


async def ping(request: Request, access: Access) -> Response:
    name, action = _name_and_action(request.path_params)
    try:
        meant = read_ping(action, request.query_params.get("rid"))
    except PingRejected as rejected:
        return _answer(str(rejected), 400)
    parts = cast(PingParts, access.context.parts[GROUP])
    found = await _find(parts, access, name, request.query_params.get("owner"))
    is_new = not found and name != "" and request.query_params.get("create") == "1"
    if is_new and await _create(access, name):
        parts.heartbeats.forget()
        found = [ExpectedHeartbeat(name, name)]
    if not found:
        return _answer("not found", 404)
    if len(found) > 1:
        return _answer("ambiguous slug", 409)
    if not parts.rates.allows((access.caller.name, found[0]), time.monotonic()):
        return _answer("rate limited", 429)
    allow_body(request, _MAX_BODY_BYTES)
    await _send(access.context, found[0], meant, action, output_of(await request.body()))
    return _answer("Created", 201) if is_new else _answer("OK", 200)


def _name_and_action(parts: dict[str, Any]) -> tuple[str, str]:
    name, action = parts.get("name", ""), parts.get("action", "")
    if not action and is_action(name):
        return "", name
    return name, action


async def _find(parts: PingParts, access: Access, name: str, owner: str | None) -> list[ExpectedHeartbeat]:
    return [
        one
        for one in await parts.heartbeats.read(access.context)
        if (not name or one.name == name)
        and (owner is None or one.owner == owner)
        and decide(access.caller.principal, Operation.SEND_DATA, one.owner).allowed
    ]


async def _create(access: Access, name: str) -> bool:
    if not decide(access.caller.principal, Operation.SEND_DATA, name).allowed:
        return False
    try:
        return await create_heartbeat(access, name)
    except InvalidInput:
        return False


async def _send(context: ApiContext, to: ExpectedHeartbeat, meant: Ping, action: str, output: str) -> None:
    if meant.check_in is None:
        datapoints = [{"key": log_key(to.name), "value": log_tail(output)}]
    else:
        datapoints = check_in_datapoints(to.name, meant.check_in, output)
    if meant.check_in is None and not log_tail(output):
        return
    identity = str(uuid.uuid4())
    if meant.run and meant.check_in is not None:
        identity = str(uuid.uuid5(uuid.UUID(meant.run), f"{to.name}/{to.owner}/{action}"))
    subject = datapoint_subject(context.settings.subjects, to.owner, "")
    body = json.dumps({"batch": datapoints}, ensure_ascii=False).encode()
    await publish(context, subject, body, identity, context.settings.data_stream)


def _answer(text: str, status: int) -> Response:
    return PlainTextResponse(text, status, headers=_HEADERS)


class PingEndpoint(Guarded):
    """Answers 404 to a token that is not valid or may not send: these clients know no other status."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except (Unauthenticated, Forbidden):
            await _answer("not found", 404)(scope, receive, send)


_ENDPOINT = PingEndpoint(Operation.SEND_DATA, ping, authenticated=authenticate_by_path)
ROUTES = tuple(
    Route(path, _ENDPOINT, methods=["GET", "POST"])
    for path in ("/ping/{token}", "/ping/{token}/{name}", "/ping/{token}/{name}/{action}")
)
