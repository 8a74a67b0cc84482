"""Probes: whether a service answers, how fast, and with the expected content.

Guarantee: the result of a probe is well or not, with the latency if the service answered and the
reason if it is not well. A probe passes the egress guard, as every delivery does. It does not
follow redirects: they are an answer.

On failure: `InvalidInput` if the probe cannot be made (an address that the guard rejects, a missing
secret). Why an exception: a probe that was never made must not look like an outage.
"""

import asyncio
import time
from dataclasses import dataclass

from rules.delivery.egress import Egress, host_and_port
from rules.delivery.http import HttpRequest, HttpResponse, request
from rules.delivery.secret_store import SecretStore
from rules.delivery.secrets import Secrets, host_of
from schemas.documents.probe import HttpProbe, Probe, TcpProbe
from tocsin.core.errors import InvalidInput, Unreachable


@dataclass(frozen=True)
class ProbeResult:
    is_well: bool
    text: str
    """The result in one sentence."""
    latency_ms: float | None = None
    """Time until the answer was read; None without an answer."""
    status: int | None = None


async def probe(egress: Egress, document: Probe, secrets: Secrets | None = None) -> ProbeResult:
    secrets = secrets or Secrets(SecretStore())
    started = time.monotonic()
    try:
        if document.http is not None:
            result = await _probe_http(egress, document.http, secrets, started)
        else:
            assert document.tcp is not None
            result = await _probe_tcp(egress, document.tcp, started)
    except Unreachable as error:
        result = ProbeResult(False, str(error))
    except InvalidInput as error:
        raise type(error)(secrets.redact(str(error))) from None
    return ProbeResult(result.is_well, secrets.redact(result.text), result.latency_ms, result.status)


async def _probe_http(egress: Egress, document: HttpProbe, secrets: Secrets, started: float) -> ProbeResult:
    url = await secrets.reveal_url(document.url)
    host = host_of(url)
    headers = {name: await secrets.reveal_to(host, value) for name, value in document.headers.items()}
    answer = await request(
        egress,
        HttpRequest(
            document.method,
            url,
            headers,
            timeout_s=document.timeout.total_seconds(),
            reads="failures" if document.contains is None else "all",
        ),
    )
    latency_ms = _since(started)
    problem = _problem(document, answer)
    text = f"{answer.where} answered {answer.status} in {latency_ms:g} ms"
    return ProbeResult(not problem, f"{text}{problem}", latency_ms, answer.status)


def _problem(document: HttpProbe, answer: HttpResponse) -> str:
    accepted = answer.status in document.status if document.status else 200 <= answer.status < 300
    if not accepted:
        expected = ", ".join(map(str, document.status)) or "200 to 299"
        return f", expected {expected}"
    if document.contains is not None and document.contains not in answer.body.decode("utf-8", "replace"):
        return f" without {document.contains!r}"
    return ""


async def _probe_tcp(egress: Egress, document: TcpProbe, started: float) -> ProbeResult:
    where, timeout_s = host_and_port(document.host, document.port), document.timeout.total_seconds()
    try:
        async with asyncio.timeout(timeout_s):
            (await egress.open(document.host, document.port)).close()
    except TimeoutError:
        raise Unreachable(f"{where} did not answer within {timeout_s:g} s") from None
    latency_ms = _since(started)
    return ProbeResult(True, f"{where} is connected to in {latency_ms:g} ms", latency_ms)


def _since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 1)
