"""Tests of channels: an operator asks, a worker sends.

Guarantee: the message leaves from a worker, with the secrets and the egress guard of that worker, as
a notification does. The process of the operator reads no secret and connects to no target: a
document in the database could otherwise send the credentials of the operator to a host of its own
choice. A test is performed by one worker, and its outcome is stored without secrets.

On failure: a test that no worker takes within a minute is never performed. A worker that dies while
it sends leaves a test without an outcome, and the command reports that.
"""

from __future__ import annotations

import asyncio
import socket
from datetime import datetime
from uuid import UUID, uuid4

import structlog

from rules.actions.channels import read_channel, send_test
from rules.delivery.alarm_facts import KINDS
from rules.delivery.egress import Egress
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.secret_store import SecretStore
from rules.delivery.secrets import Secrets
from tocsin.core.db import Connection, fetch_one, open_service_session, statement
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.service import beat
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_POLL_S = 5.0
_TAKEN_WITHIN_S = 10.0
# A delivery takes a minute at most.
_ENDED_WITHIN_S = 75.0
_READ_EVERY_S = 0.1
_MAX_TEXT_LENGTH = 4_000


class ChannelTester:
    """A part of the worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._egress = Egress.from_settings(settings)

    async def run(self) -> None:
        async with open_service_session(self._settings, "worker channel tests") as connection:
            await connection.execute(statement("rules.actions/listen_channel_tests"))
            while True:
                beat("channel tests", rest_s=_POLL_S)
                while await self.run_once(connection):
                    pass
                async for _ in connection.notifies(timeout=_POLL_S, stop_after=1):
                    pass

    async def run_once(self, connection: Connection) -> bool:
        """Perform one test. False if there is none."""
        taken = {"worker": socket.gethostname()}
        row = await fetch_one(connection, "rules.actions/take_channel_test", taken)
        if row is None:
            return False
        id, channel, transition, who, now = row
        outcome = await self._send(connection, channel, transition, now, who)
        _log.info("channel tested", channel=channel, state=outcome.state, requested_by=who)
        result = {"id": id, "state": outcome.state, "text": outcome.text[:_MAX_TEXT_LENGTH].replace("\0", "")}
        await connection.execute(statement("rules.actions/end_channel_test"), result)
        return True

    async def _send(
        self, connection: Connection, name: str, transition: str, now: datetime, who: str
    ) -> DeliveryOutcome:
        kind = next((kind for kind in KINDS if kind == transition), None)
        try:
            if kind is None:
                raise InvalidInput(
                    f"unknown transition {transition!r}", remedy=f"use one of {', '.join(KINDS)}"
                )
            channel = await read_channel(connection, name)
        except InvalidInput as error:
            return DeliveryOutcome("permanent", str(error))
        secrets = Secrets(SecretStore.from_settings(self._settings), name)
        return await send_test(self._egress, channel, kind, now, who, secrets, self._settings.console_url)


async def request_test(connection: Connection, channel: str, transition: str, who: str) -> UUID:
    """Ask for a test. Returns its id. `InvalidInput` if there is no such channel."""
    await read_channel(connection, channel)
    id = uuid4()
    values = {"id": id, "channel": channel, "transition": transition, "who": who}
    await connection.execute(statement("rules.actions/request_channel_test"), values)
    return id


async def await_outcome(connection: Connection, id: UUID) -> DeliveryOutcome:
    """Wait for the outcome of a test. `Unreachable` if no worker takes or ends it in time."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    while True:
        row = await fetch_one(connection, "rules.actions/read_channel_test", {"id": id})
        worker, state, text = row if row is not None else (None, None, None)
        if state is not None:
            return DeliveryOutcome(state, str(text))
        waited_s = loop.time() - began_s
        if worker is None and waited_s > _TAKEN_WITHIN_S:
            raise Unreachable(
                f"no worker took the test within {_TAKEN_WITHIN_S:g} s",
                remedy="start one with `tocsin run worker`; `tocsin doctor` shows what is wrong",
            )
        if waited_s > _ENDED_WITHIN_S:
            raise Unreachable(f"the worker on {worker} did not report an outcome", remedy="look into its log")
        await asyncio.sleep(_READ_EVERY_S)
