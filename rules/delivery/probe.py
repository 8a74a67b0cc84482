"""Probes: is a service there, how fast, and does it say what it should?

Guarantee: a probe always gives a result: well or not, the latency if it answered, and why it is not well.
It goes through the same guard as every delivery. Redirects are not followed: they are an answer.

Why a refused address raises: it says nothing about the service. A probe that was never made must not
look like an outage.

On failure: `InvalidInput` when the probe cannot be made (a refused address, a missing secret).
"""

import asyncio
import time
from dataclasses import dataclass

from rules.delivery.egress import Egress, place
from rules.delivery.http import Request, Response, request
from rules.delivery.secrets import Secrets
from schemas.documents.probe import HttpProbe, Probe, TcpProbe
from tocsin.core.errors import InvalidInput, Unreachable


@dataclass(frozen=True)
class ProbeResult:
    is_well: bool
    text: str
    """One sentence: what was found."""
    latency_ms: float | None = None
    """Until the answer was read; None when there was none."""
    status: int | None = None


async def probe(egress: Egress, one: Probe, secrets: Secrets | None = None) -> ProbeResult:
    secrets = secrets or Secrets()
    started = time.monotonic()
    try:
        if one.http is not None:
            result = await _probe_http(egress, one.http, secrets, started)
        else:
            assert one.tcp is not None
            result = await _probe_tcp(egress, one.tcp, started)
    except Unreachable as error:
        result = ProbeResult(False, str(error))
    except InvalidInput as error:
        raise type(error)(secrets.redact(str(error))) from None
    return ProbeResult(result.is_well, secrets.redact(result.text), result.latency_ms, result.status)


async def _probe_http(egress: Egress, one: HttpProbe, secrets: Secrets, started: float) -> ProbeResult:
    headers = {name: secrets.reveal(value) for name, value in one.headers.items()}
    answer = await request(
        egress,
        Request(
            one.method,
            secrets.reveal(one.url),
            headers,
            timeout_s=one.timeout.total_seconds(),
            reads="failures" if one.contains is None else "all",
        ),
    )
    latency_ms = _since(started)
    problem = _problem(one, answer)
    text = f"{answer.where} answered {answer.status} in {latency_ms:g} ms"
    return ProbeResult(not problem, f"{text}{problem}", latency_ms, answer.status)


def _problem(one: HttpProbe, answer: Response) -> str:
    accepted = answer.status in one.status if one.status else 200 <= answer.status < 300
    if not accepted:
        expected = ", ".join(map(str, one.status)) or "200 to 299"
        return f", expected {expected}"
    if one.contains is not None and one.contains not in answer.body.decode("utf-8", "replace"):
        return f" without {one.contains!r}"
    return ""


async def _probe_tcp(egress: Egress, one: TcpProbe, started: float) -> ProbeResult:
    where, timeout_s = place(one.host, one.port), one.timeout.total_seconds()
    try:
        async with asyncio.timeout(timeout_s):
            (await egress.open(one.host, one.port)).close()
    except TimeoutError:
        raise Unreachable(f"{where} did not answer within {timeout_s:g} s") from None
    latency_ms = _since(started)
    return ProbeResult(True, f"{where} is connected to in {latency_ms:g} ms", latency_ms)


def _since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 1)
