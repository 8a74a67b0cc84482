import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rules.delivery.deliver import deliver
from rules.delivery.egress import Egress
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from schemas.documents.targets import AppriseTarget
from tests.rules.delivery.mail_servers import mail_server
from tests.rules.delivery.named_secrets import named_secrets
from tests.rules.delivery.receivers import endless, receiver, respond, stall
from tocsin.core.extras import install_remedy

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
MESSAGE = Message("[HIGH] hot", "65 °C")


async def send(egress: Egress, url: str, timeout: str = "20s") -> DeliveryOutcome:
    target = AppriseTarget.model_validate({"url": {"secret": "url"}, "timeout": timeout})
    return await deliver(egress, target, MESSAGE, key="k", now=NOW, secrets=named_secrets(url=url))


async def test_a_service_gets_the_title_and_the_text(egress: Egress) -> None:
    async with receiver() as server:
        outcome = await send(egress, f"json://127.0.0.1:{server.port}/s3cret-path")
    assert outcome == DeliveryOutcome("delivered", "JSON took the message", {"target": "JSON"})
    assert server.only.path == "/s3cret-path"
    assert (server.only.json["title"], server.only.json["message"]) == ("[HIGH] hot", "65 °C")


async def test_certificates_are_verified_with_our_own_authorities_too(
    egress: Egress, server_tls: Callable[[str], ssl.SSLContext]
) -> None:
    async with receiver(tls=server_tls("localhost")) as server:
        url = f"jsons://localhost:{server.port}/"
        assert (await send(egress, url)).state == "delivered"
        refused = await send(egress, f"{url}?verify=no")
        assert refused.text == "the url has verify=no: certificates are always verified"
    async with receiver(tls=server_tls("other.example")) as server:
        assert (await send(egress, f"jsons://localhost:{server.port}/")).state == "retryable"
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "json://127.0.0.1:{port}/",
        "json://localhost:{port}/",
        "form://127.0.0.1:{port}/",
        "mailto://user:s3cret-word@127.0.0.1:{port}?smtp=127.0.0.1&from=c@d.example&to=a@b.example&mode=insecure",
        "gotify://127.0.0.1:{port}/s3crets3cret",
        "rsyslog://127.0.0.1:{port}/",
        "json://169.254.169.254/latest/meta-data",
    ],
)
async def test_no_service_reaches_an_internal_address_unless_it_is_allowed(
    guard: Callable[..., Egress], url: str
) -> None:
    async with receiver() as server:
        outcome = await send(guard(allow=""), url.format(port=server.port))
    assert outcome.state == "permanent", outcome
    assert "allow it with TOCSIN_EGRESS_ALLOW" in outcome.text
    assert "s3cret" not in repr(outcome)
    assert server.connections == 0


async def test_a_mail_service_is_used_when_it_is_allowed(egress: Egress) -> None:
    async with mail_server() as mailbox:
        url = (
            f"mailto://127.0.0.1:{mailbox.port}?smtp=127.0.0.1&from=a@b.example&to=c@d.example&mode=insecure"
        )
        outcome = await send(egress, url)
    assert outcome.state == "delivered", outcome
    assert mailbox.envelopes[0].rcpt_tos == ["c@d.example"]


async def test_this_machine_is_not_a_service(egress: Egress) -> None:
    outcome = await send(egress, "syslog://")
    assert outcome.state == "permanent"
    assert "it wants to use syslog." in outcome.text


@pytest.mark.parametrize("redirect", ["", "?redirect=yes"])
async def test_redirects_are_not_followed(egress: Egress, redirect: str) -> None:
    async with (
        receiver() as elsewhere,
        receiver(respond(302, b"", Location=f"http://127.0.0.1:{elsewhere.port}/")) as server,
    ):
        outcome = await send(egress, f"json://127.0.0.1:{server.port}/{redirect}")
    assert outcome.state == "permanent"
    assert elsewhere.connections == 0


@pytest.mark.parametrize(("status", "state"), [(404, "permanent"), (429, "retryable"), (503, "retryable")])
async def test_what_the_service_answers_decides_the_outcome(egress: Egress, status: int, state: str) -> None:
    async with receiver(respond(status)) as server:
        outcome = await send(egress, f"json://127.0.0.1:{server.port}/")
    assert outcome.state == state
    assert f"error={status}" in outcome.text


@pytest.mark.parametrize("behave", [stall, endless(b"HTTP/1.1 200 OK\r\n\r\n")])
async def test_a_service_that_never_ends_is_ended(egress: Egress, behave: Any) -> None:
    async with receiver(behave) as server:
        outcome = await send(egress, f"json://127.0.0.1:{server.port}/", timeout="1500ms")
    assert outcome.state == "retryable"


@pytest.mark.parametrize("url", ["nope://x", "\0", "x" * 10_000])
async def test_a_url_that_apprise_does_not_know_is_permanent(egress: Egress, url: str) -> None:
    outcome = await send(egress, url)
    assert outcome.state == "permanent", outcome


async def test_the_process_sees_nothing_of_the_environment(
    egress: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver() as proxy, receiver() as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert (await send(egress, f"json://127.0.0.1:{server.port}/")).state == "delivered"
    assert proxy.connections == 0


async def test_without_apprise_the_error_has_the_package_to_install(
    egress: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    outcome = await send(egress, "json://127.0.0.1/")
    assert outcome == DeliveryOutcome(
        "permanent", f"apprise is not installed for the worker: {install_remedy('apprise')}"
    )
