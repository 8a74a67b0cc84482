from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from rules.delivery.egress import Egress, EgressRefused
from rules.delivery.probe import ProbeResult, probe
from schemas.documents.probe import Probe
from tests.rules.delivery.named_secrets import named_secrets
from tests.rules.delivery.receivers import endless, receiver, reset_connection, respond, stall
from tocsin.core.errors import InvalidInput


async def look(egress: Egress, port: int, **keys: Any) -> ProbeResult:
    url = f"http://127.0.0.1:{port}/health"
    one = Probe.model_validate({"http": {"url": url, **keys}})
    return await probe(egress, one, named_secrets(auth="s3cret-token"))


async def test_a_service_that_answers_is_well(egress: Egress) -> None:
    async with receiver() as server:
        result = await look(egress, server.port, headers={"Authorization": {"secret": "auth"}})
    assert (result.is_well, result.status) == (True, 200)
    assert result.latency_ms is not None
    assert 0 < result.latency_ms < 10_000
    assert result.text == f"127.0.0.1:{server.port} answered 200 in {result.latency_ms:g} ms"
    assert (server.only.method, server.only.path) == ("GET", "/health")
    assert server.only.headers["authorization"] == "s3cret-token"


@pytest.mark.parametrize(
    ("status", "keys", "is_well", "said"),
    [
        (204, {}, True, ""),
        (301, {}, False, ", expected 200 to 299"),
        (301, {"status": [200, 301]}, True, ""),
        (200, {"status": [404]}, False, ", expected 404"),
        (500, {}, False, ", expected 200 to 299"),
        (200, {"contains": "all is we"}, True, ""),
        (200, {"contains": "fine"}, False, " without 'fine'"),
        (200, {"method": "HEAD"}, True, ""),
    ],
)
async def test_the_answer_is_compared_with_the_expected_one(
    egress: Egress, status: int, keys: dict[str, Any], is_well: bool, said: str
) -> None:
    body = b"" if status == 204 or "method" in keys else b"all is well"
    async with receiver(respond(status, body)) as server:
        result = await look(egress, server.port, **keys)
    assert (result.is_well, result.status) == (is_well, status)
    assert result.text.endswith(f" ms{said}")


@pytest.mark.parametrize("behave", [stall, reset_connection])
async def test_a_service_that_does_not_answer_is_not_well(egress: Egress, behave: Any) -> None:
    async with receiver(behave) as server:
        result = await look(egress, server.port, timeout="300ms")
    assert (result.is_well, result.latency_ms, result.status) == (False, None, None)
    assert result.text.startswith(f"127.0.0.1:{server.port} ")


async def test_only_the_beginning_of_an_endless_body_is_searched(egress: Egress) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
    async with receiver(endless(head)) as server:
        assert (await look(egress, server.port, contains="xxx")).is_well
        assert not (await look(egress, server.port, contains="y")).is_well


async def test_a_port_is_connected_to(egress: Egress) -> None:
    async with receiver() as server:
        one = Probe.model_validate({"tcp": {"host": "127.0.0.1", "port": server.port}})
        result = await probe(egress, one)
    assert result.is_well
    assert result.text.startswith(f"127.0.0.1:{server.port} is connected to in ")
    closed = await probe(egress, one)
    assert (closed.is_well, closed.latency_ms) == (False, None)
    assert f"127.0.0.1:{server.port} cannot be reached: connect" in closed.text


async def test_a_probe_that_was_never_made_does_not_look_like_an_outage(guard: Callable[..., Egress]) -> None:
    tcp = Probe.model_validate({"tcp": {"host": "127.0.0.1", "port": 80}})
    http = Probe.model_validate({"http": {"url": "http://127.0.0.1/"}})
    for one in (tcp, http):
        with pytest.raises(EgressRefused, match="loopback"):
            await probe(guard(allow=""), one)
    missing = Probe.model_validate({"http": {"url": "http://127.0.0.1/", "headers": {"A": {"secret": "no"}}}})
    with pytest.raises(InvalidInput, match="the worker has no secret 'no'"):
        await probe(guard(), missing, named_secrets())


def test_a_probe_has_one_target() -> None:
    http, tcp = {"url": "http://a.example/"}, {"host": "a.example", "port": 1}
    for keys in ({}, {"http": http, "tcp": tcp}):
        with pytest.raises(ValidationError, match="needs one of http or tcp"):
            Probe.model_validate(keys)
