"""The service: probes, limits, problems and the stop."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.api.running_api import RunningApi, running_api
from tocsin.api.access.permission import Access, guarded
from tocsin.api.access.secret_text import new_secret
from tocsin.api.app import create_api
from tocsin.api.protocol import MAX_HEAD_BYTES, BoundedProtocol
from tocsin.api.route_group import RouteGroup
from tocsin.api.routes import GROUPS
from tocsin.api.service import listen
from tocsin.core.errors import Refused
from tocsin.core.service import stop_services
from tocsin.core.settings import Settings
from tocsin.policy import Operation


async def test_probes_answer_without_credentials(api: RunningApi) -> None:
    stranger = await api.with_token(None)
    assert (await stranger.get("/healthz")).text == "ok\n"
    assert (await stranger.get("/readyz")).text == "ready\n"


async def test_the_api_answers_503_and_is_not_ready_while_postgres_is_away(settings: Settings) -> None:
    away = settings.model_copy(update={"postgres": "postgresql://tocsin@127.0.0.1:1/tocsin"})
    async with running_api(away, must_be_ready=False) as api:
        ann = await api.with_token(new_secret("api"))
        answer = await ann.get("/v1/me")
        assert (answer.status, answer.problem["detail"]) == (503, "postgres does not answer in time")
        assert (await ann.get("/readyz")).status == 503
        assert (await ann.get("/healthz")).status == 200
        assert api.service.restarts == 0


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/v1/unknown", 404, "not-found"),
        ("GET", "/v1/me/", 404, "not-found"),
        ("POST", "/v1/me", 405, "wrong-method"),
        ("GET", "/v1/me", 401, "unauthenticated"),
    ],
)
async def test_errors_of_the_framework_are_problems(
    api: RunningApi, method: str, path: str, status: int, kind: str
) -> None:
    stranger = await api.with_token(None)
    answer = await stranger.request(method, path)
    assert (answer.status, answer.problem["type"]) == (status, f"/docs/problems#{kind}")


async def test_a_wrong_body_names_its_place(api: RunningApi) -> None:
    admin = await api.client("admin:*")
    answer = await admin.post("/v1/tokens", {"name": "", "grants": ["viewer:*"], "extra": 1})
    assert answer.status == 422
    assert [error["pointer"] for error in answer.problem["errors"]] == ["#/name", "#/extra"]
    not_json = await admin.request(
        "POST", "/v1/tokens", data=b"{", headers={"content-type": "application/json"}
    )
    assert (not_json.status, not_json.problem["detail"]) == (400, "the body is not JSON")


async def test_a_body_beyond_the_limit_is_413_whatever_its_length_claims(api: RunningApi) -> None:
    admin = await api.client("admin:*")
    body = b'{"name": "' + b"x" * api.settings.api_body_bytes + b'"}'

    async def chunks() -> object:
        yield body

    for data in (body, chunks()):
        answer = await admin.request(
            "POST", "/v1/tokens", data=data, headers={"content-type": "application/json"}
        )
        assert (answer.status, answer.problem["type"]) == (413, "/docs/problems#too-large")


async def test_a_head_beyond_the_limit_is_431(api: RunningApi) -> None:
    reader, writer = await connect(api)
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + b"x-long: " + b"x" * (MAX_HEAD_BYTES + 1))
    await writer.drain()
    assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")
    writer.close()


async def test_a_head_that_does_not_arrive_in_time_is_closed(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedProtocol, "head_within_s", 0.05)
    for begin in (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTT"):
        reader, writer = await connect(api)
        writer.write(begin)
        with suppress(ConnectionError):
            async with asyncio.timeout(30):
                await reader.read()
        writer.close()


async def test_a_new_connection_replaces_an_idle_one_if_all_are_taken(settings: Settings) -> None:
    few = settings.model_copy(update={"api_connections": 10})
    async with running_api(few) as api:
        idle = [await connect(api) for _ in range(30)]
        stranger = await api.with_token(None)
        assert (await stranger.get("/healthz")).status == 200
        for _, writer in idle:
            writer.close()


def one_route(path: str, endpoint: object) -> RouteGroup:
    return RouteGroup("test", routes=[Route(path, guarded(Operation.VIEW_EVENTS, endpoint), methods=["GET"])])  # type: ignore[arg-type]


async def test_a_request_that_is_not_answered_in_time_is_cancelled(settings: Settings) -> None:
    cancelled = asyncio.Event()

    async def endless(request: Request, access: Access) -> Response:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return PlainTextResponse("never")

    slow = settings.model_copy(update={"api_request_s": 1.0})
    async with running_api(slow, [*GROUPS, one_route("/endless", endless)]) as api:
        ann = await api.client("viewer:*")
        assert (await ann.get("/v1/me")).status == 200, (
            "known from now on, so that the wait is in the handler"
        )
        answer = await ann.get("/endless")
        assert (answer.status, cancelled.is_set()) == (503, True)
        assert answer.problem["detail"] == "the request was not answered within 1 s"


async def test_a_request_under_way_is_finished_when_the_service_stops(settings: Settings) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()

    async def patient(request: Request, access: Access) -> Response:
        began.set()
        await access.context.stopping.wait()
        await may_end.wait()
        return PlainTextResponse("finished")

    async with running_api(settings, [*GROUPS, one_route("/patient", patient)]) as api:
        ann = await api.client("viewer:*")
        answering = asyncio.create_task(ann.get("/patient"))
        await began.wait()
        stopping = asyncio.create_task(stop_services([api.service]))
        asyncio.get_running_loop().call_later(0.2, may_end.set)
        assert (await answering).text == "finished"
        await stopping
        with pytest.raises(OSError):
            await connect(api)


async def test_an_exception_is_a_problem_without_its_text(settings: Settings) -> None:
    async def broken(request: Request, access: Access) -> Response:
        raise ZeroDivisionError("secret of the code")

    async with running_api(settings, [*GROUPS, one_route("/broken", broken)]) as api:
        ann = await api.client("viewer:*")
        answer = await ann.get("/broken")
        assert (answer.status, "secret" in answer.text) == (500, False)
        assert answer.problem["type"] == "/docs/problems#defect"


def test_a_route_without_a_decision_does_not_start() -> None:
    async def open_door(request: Request) -> Response:
        return PlainTextResponse("everything")

    group = RouteGroup("test", routes=[Route("/door", open_door, methods=["GET"])])
    with pytest.raises(TypeError, match="needs methods, and a `guarded`"):
        create_api([*GROUPS, group])


def test_plain_http_beyond_loopback_is_refused_unless_allowed(settings: Settings) -> None:
    wide = settings.model_copy(update={"api": "0.0.0.0:0"})
    with pytest.raises(Refused, match="clear text"), listen(wide):
        pass
    with listen(wide.model_copy(update={"api_plain": True})) as listening:
        assert listening.getsockname()[1] > 0


def test_an_address_in_use_is_one_clear_error(settings: Settings) -> None:
    with listen(settings.model_copy(update={"api": "127.0.0.1:0"})) as listening:
        taken = settings.model_copy(update={"api": f"127.0.0.1:{listening.getsockname()[1]}"})
        with pytest.raises(Refused, match="cannot be listened on"), listen(taken):
            pass


async def connect(api: RunningApi) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = api.url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


async def test_the_reference_page_needs_no_other_host_and_no_script(api: RunningApi) -> None:
    stranger = await api.with_token(None)
    page = await stranger.get("/docs")
    assert "POST /v1/alarms/{id}:ack" in page.text
    assert "acknowledge-alarm" in page.text
    assert "http://" not in page.text.replace(api.url, "")
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    kinds = await stranger.get("/docs/problems")
    assert "id='not-found'" in kinds.text
