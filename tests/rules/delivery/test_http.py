import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rules.delivery.egress import Egress, EgressRefused
from rules.delivery.http import MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, HttpRequest, _only_to, request
from tests.rules.delivery.receivers import (
    endless,
    receiver,
    reset_connection,
    respond,
    respond_raw,
    stall,
    stall_after,
)
from tocsin.core.errors import InvalidInput, Unreachable

ServerTls = Callable[[str], ssl.SSLContext]


def get_request(url: str, **more: Any) -> HttpRequest:
    return HttpRequest("GET", url, more.pop("headers", {}), timeout_s=more.pop("timeout_s", 5), **more)


async def to_this_machine(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def test_a_request_arrives_as_it_was_given(egress: Egress) -> None:
    async with receiver(respond(201, b"made", X_Trace="7")) as server:
        url = f"http://127.0.0.1:{server.port}/a%20b?q=1"
        answer = await request(egress, HttpRequest("PUT", url, {"X-A": "1"}, b"body", reads="all"))
    assert (answer.status, answer.body, answer.headers["X-Trace"]) == (201, b"made", "7")
    assert answer.where == f"127.0.0.1:{server.port}"
    got = server.only
    assert (got.method, got.path, got.body) == ("PUT", "/a%20b?q=1", b"body")
    assert (got.headers["x-a"], got.headers["user-agent"]) == ("1", "tocsin")
    assert got.headers["host"] == f"127.0.0.1:{server.port}"
    assert "accept-encoding" not in got.headers
    assert "cookie" not in got.headers


async def test_the_certificate_is_verified_against_the_name_while_the_address_is_pinned(
    guard: Callable[..., Egress], server_tls: ServerTls
) -> None:
    context = server_tls("hooks.example")
    shown: list[str | None] = []
    context.sni_callback = lambda _, name, __: shown.append(name)
    async with receiver(tls=context) as server:
        egress = guard(allow="127.0.0.1", resolve=to_this_machine)
        answer = await request(egress, get_request(f"https://hooks.example:{server.port}/"))
        assert answer.status == 200
        with pytest.raises(Unreachable, match="its certificate is not accepted \\(Hostname mismatch"):
            await request(egress, get_request(f"https://other.example:{server.port}/"))
    assert shown == ["hooks.example", "other.example"]
    assert server.only.headers["host"] == f"hooks.example:{server.port}"


async def test_a_certificate_of_an_unknown_authority_is_not_accepted(
    egress: Egress, server_tls: ServerTls
) -> None:
    stranger = Egress(egress.allow_list, ssl.create_default_context())
    async with receiver(tls=server_tls("127.0.0.1")) as server:
        url = f"https://127.0.0.1:{server.port}/"
        with pytest.raises(Unreachable, match="certificate is not accepted"):
            await request(stranger, get_request(url))
        assert (await request(egress, get_request(url))).status == 200


async def test_a_server_without_tls_is_reported(egress: Egress) -> None:
    async with receiver(greeting=b"220 mail.example ESMTP\r\n") as server:
        with pytest.raises(Unreachable, match=f"127.0.0.1:{server.port} cannot be reached: tls failed"):
            await request(egress, get_request(f"https://127.0.0.1:{server.port}/"))


async def test_a_name_that_changes_its_address_has_no_effect(guard: Callable[..., Egress]) -> None:
    asked = 0

    async def rebind(host: str, port: int) -> Sequence[str]:
        nonlocal asked
        asked += 1
        return ["192.0.2.1"] if asked == 1 else ["127.0.0.1"]

    async with receiver() as server:
        # An address for documentation is allowed here to stand for a public one: no server answers
        # there.
        egress = guard(allow="192.0.2.1", resolve=rebind)
        with pytest.raises(Unreachable):
            await request(egress, get_request(f"http://rebind.example:{server.port}/", timeout_s=0.3))
    assert (asked, server.connections) == (1, 0)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "①②⑦.0.0.1",
    ],
)
async def test_no_spelling_reaches_this_machine_unless_it_is_allowed(
    guard: Callable[..., Egress], host: str
) -> None:
    async with receiver() as server:
        with pytest.raises((InvalidInput, Unreachable)):
            await request(guard(allow=""), get_request(f"http://{host}:{server.port}/"))
    assert server.connections == 0


async def test_a_redirect_is_an_answer_and_is_not_followed(egress: Egress) -> None:
    async with (
        receiver() as elsewhere,
        receiver(respond(302, b"", Location=f"http://127.0.0.1:{elsewhere.port}/")) as server,
    ):
        answer = await request(egress, get_request(f"http://127.0.0.1:{server.port}/"))
    assert answer.status == 302
    assert elsewhere.connections == 0


async def test_a_proxy_of_the_environment_is_not_used(
    egress: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver() as proxy, receiver() as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await request(egress, get_request(f"http://127.0.0.1:{server.port}/"))).status == 200
    assert proxy.connections == 0


SHORT_S, LONG_S = 0.3, 20.0


@pytest.mark.parametrize(
    ("behave", "timeout_s", "message"),
    [
        (
            reset_connection,
            LONG_S,
            "cannot be reached: connection reset by peer|closed the connection without an answer",
        ),
        (respond_raw(b""), LONG_S, "closed the connection without an answer"),
        (respond_raw(b"220 mail.example ESMTP\r\n"), LONG_S, "gave an answer that is not http"),
        (
            respond_raw(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
            LONG_S,
            "gave an answer that is not http",
        ),
        (
            respond_raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"),
            LONG_S,
            "gave an answer that is not http",
        ),
        (stall, SHORT_S, "did not answer within 0.3 s"),
        (stall_after(b"HTTP/1.1 200 OK\r\nX-Half: "), SHORT_S, "did not answer within 0.3 s"),
        (endless(b"HTTP/1.1 200 OK\r\n"), LONG_S, "gave an answer that is not http"),
    ],
)
async def test_a_server_that_fails_may_be_tried_again(
    egress: Egress, behave: Any, timeout_s: float, message: str
) -> None:
    async with receiver(behave) as server:
        with pytest.raises(Unreachable, match=rf"^127.0.0.1:{server.port} ({message})"):
            await request(egress, get_request(f"http://127.0.0.1:{server.port}/", timeout_s=timeout_s))


HEAD = b"HTTP/1.1 %d Whatever\r\nContent-Length: 99999999999\r\n\r\n"


async def test_the_body_of_a_success_is_not_waited_for(egress: Egress) -> None:
    for behave in (endless(HEAD % 200), stall_after(HEAD % 200)):
        async with receiver(behave) as server:
            started = time.monotonic()
            answer = await request(egress, get_request(f"http://127.0.0.1:{server.port}/", timeout_s=60))
            assert (answer.status, answer.body) == (200, b"")
            assert time.monotonic() - started < 30


async def test_of_an_endless_body_only_the_beginning_is_read(egress: Egress) -> None:
    async with receiver(endless(HEAD % 500)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        failed = await request(egress, get_request(url))
        assert failed.excerpt == "x" * 300 + "..."
        whole = await request(egress, get_request(url, reads="all"))
        assert len(whole.body) == MAX_RESPONSE_BYTES


async def test_an_error_whose_body_stalls_is_still_an_answer(
    egress: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rules.delivery.http._EXCERPT_TIMEOUT_S", 0.1)
    async with receiver(stall_after(HEAD % 503)) as server:
        answer = await request(egress, get_request(f"http://127.0.0.1:{server.port}/"))
    assert (answer.status, answer.excerpt) == (503, "")


async def test_a_compressed_bomb_stays_compressed(egress: Egress) -> None:
    async with receiver(respond(500, b"\x1f\x8b" + b"\0" * 50, Content_Encoding="gzip")) as server:
        answer = await request(egress, get_request(f"http://127.0.0.1:{server.port}/"))
    assert len(answer.body) == 52


async def test_the_excerpt_of_any_bytes_is_one_line_of_text(egress: Egress) -> None:
    async with receiver(respond(400, b"a\0b\xff\xfe\r\n\x1b[31mc\xe2\x80\xa8 d")) as server:
        answer = await request(egress, get_request(f"http://127.0.0.1:{server.port}/"))
    assert answer.excerpt == "a b\ufffd\ufffd [31mc d"


@pytest.mark.parametrize("size", [MAX_REQUEST_BYTES + 1, 10_000_000])
async def test_a_body_that_is_too_large_is_rejected_before_connecting(egress: Egress, size: int) -> None:
    async with receiver() as server:
        url = f"http://127.0.0.1:{server.port}/"
        with pytest.raises(InvalidInput, match=f"has {size} bytes, at most 1000000 are sent"):
            await request(egress, HttpRequest("POST", url, {}, b"x" * size))
        answer = await request(egress, HttpRequest("POST", url, {}, b"x" * MAX_REQUEST_BYTES))
        assert (answer.status, len(server.only.body)) == (200, MAX_REQUEST_BYTES)
    assert server.connections == 1


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0", "\x7f", "ü€"])
async def test_a_header_cannot_be_injected_and_its_value_is_not_shown(egress: Egress, value: str) -> None:
    async with receiver() as server:
        url = f"http://127.0.0.1:{server.port}/"
        with pytest.raises(InvalidInput) as refused:
            await request(egress, get_request(url, headers={"X-A": value}))
    assert str(refused.value).startswith("the header 'X-A' has a value that cannot be sent")
    assert value not in str(refused.value)
    assert server.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "ftp://hooks.example/s3cret",
        "file:///etc/s3cret",
        "gopher://127.0.0.1/s3cret",
        "hooks.example/s3cret",
        "https:///s3cret",
        "http://user:s3cret@hooks.example/",
        "http://s3cret@hooks.example/",
        "http://hooks.example/s3cret x",
        "http://hooks.example/s3cret\r\nX: 1",
        "http://hooks.example:0/s3cret",
        "http://hooks.example:99999/s3cret",
        "http://[::1/s3cret",
        "http://hooks.example\\@127.0.0.1/s3cret",
        "http://hooks.example/" + "s3cret" * 500,
    ],
)
async def test_a_url_that_is_not_plain_http_is_rejected_without_showing_it(egress: Egress, url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await request(egress, get_request(url))
    assert "s3cret" not in str(refused.value)


async def test_errors_show_the_host_and_never_the_path_of_a_url(guard: Callable[..., Egress]) -> None:
    async with receiver() as server:
        pass
    url = f"http://127.0.0.1:{server.port}/services/T000/s3cret?token=s3cret"
    with pytest.raises(Unreachable) as failed:
        await request(guard(), get_request(url))
    with pytest.raises(EgressRefused) as refused:
        await request(guard(allow=""), get_request(url))
    assert "s3cret" not in f"{failed.value} {refused.value}"


def test_no_socket_is_made_for_an_address_that_was_not_checked() -> None:
    make = _only_to(["192.0.2.1", "2001:db8::1"])
    for address in (("192.0.2.1", 80), ("2001:db8::1", 80, 0, 0)):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        make((family, socket.SOCK_STREAM, 0, "", address)).close()
    with pytest.raises(ConnectionRefusedError, match=r"127.0.0.1 was not checked"):
        make((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 80)))
