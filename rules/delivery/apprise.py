"""Delivers to any other service by its apprise url, in a separate process.

Guarantee: the same restrictions apply as for the other targets. The process rejects every
connection to an address that the egress guard would reject, at the moment of connecting. It follows
no redirects, verifies certificates, has none of the worker's environment, and is killed after the
timeout.

Why a process: apprise supports some two hundred services, each with its own way to connect, so a
list of safe urls could not be kept correct. apprise also blocks its thread, and a thread can
neither be stopped nor be guarded without guarding the whole worker.

On failure: a url that apprise does not know is permanent. If the service rejects the message, its
HTTP status decides: 5xx, 408, 425, 429 and no status are retryable, any other is permanent. A
timeout is retryable.
"""

import asyncio
import importlib.util
import json
import sys
from contextlib import suppress
from typing import Any

from rules.delivery.egress import Egress
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.secrets import Secrets
from schemas.documents.targets import AppriseTarget
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.extras import install_remedy

_PROCESS = "rules.delivery.apprise_process"
_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": ""}


async def send_apprise(
    egress: Egress, target: AppriseTarget, message: Message, secrets: Secrets
) -> DeliveryOutcome:
    if importlib.util.find_spec("apprise") is None:
        raise InvalidInput("apprise is not installed for the worker", remedy=install_remedy("apprise"))
    timeout_s = target.timeout.total_seconds()
    request = {
        "url": await secrets.reveal_url(target.url),
        "title": message.subject_line,
        "text": message.text,
        "allow": egress.allow_list.text,
        "ca_file": egress.ca_file,
        "timeout_s": timeout_s,
    }
    try:
        async with asyncio.timeout(timeout_s):
            reply = await _run(json.dumps(request).encode())
    except TimeoutError:
        raise Unreachable(f"the service did not answer within {timeout_s:g} s") from None
    return DeliveryOutcome(reply["state"], reply["text"], {"target": reply["service"]})


async def _run(request: bytes) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        # Isolated: ignores PYTHON* variables and the user's site-packages.
        "-I",
        "-m",
        _PROCESS,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_ENVIRONMENT,
    )
    try:
        output, _ = await process.communicate(request)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        reply: dict[str, Any] = json.loads(output)
    except ValueError:
        raise Unreachable(f"the apprise process ended with exit code {process.returncode}") from None
    return reply
