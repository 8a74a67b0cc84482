"""Planted secrets: none of them is in a log, an error, a record, a row, a metric or an answer of a command."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from nats.aio.client import Client
from psycopg import sql

from rules.metrics import WORKER
from tests.cdc.published_records import smaller
from tests.rules.delivery.receivers import receiver, respond
from tests.rules.instance import Instance
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.logs import configure_logs
from tocsin.core.metrics import format_metrics
from tocsin.core.settings import Settings

TOKEN = "S3cretToken-of-the-ticket-system"
SIGNING = f"whsec_{base64.b64encode(b'S3cretSigningKey' * 2).decode()}"
PLANTED = (TOKEN, SIGNING, base64.b64encode(TOKEN.encode()).decode()[:-2], TOKEN.encode().hex())
STEPS = """
- webhook: {url: "http://127.0.0.1:PORT/a", headers: {Authorization: {secret: token}}, secrets: [{secret: signing}]}
"""


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    yield
    structlog.configure(**before)
    logging.getLogger().handlers[:] = handlers


@pytest.mark.parametrize("log_format", ["console", "json"])
async def test_no_planted_secret_leaves_a_delivery(
    settings: Settings,
    connection: Connection,
    bus: Client,
    capsys: pytest.CaptureFixture[str],
    log_format: str,
) -> None:
    there = smaller(
        settings, egress_allow="127.0.0.1", secrets_bound="token@127.0.0.1", log_format=log_format
    )
    there._secret_variables.update(TOCSIN_SECRET_TOKEN=TOKEN, TOCSIN_SECRET_SIGNING=SIGNING)
    configure_logs(there)
    instance = await Instance.open(there, connection, bus)
    echo = json.dumps({"you sent": PLANTED}).encode()
    async with receiver(respond(400, echo)) as server:
        await instance.runbook(STEPS.replace("PORT", str(server.port)))
        await instance.event()
    assert server.requests[0].headers["authorization"] == TOKEN
    captured = capsys.readouterr()
    places = {
        "the log": captured.err + captured.out,
        "the metrics": format_metrics([WORKER]),
        "the settings": repr(there),
        "the tables": await _all_rows_as_text(connection),
    }
    assert "answered 400" in places["the tables"]
    for place, text in places.items():
        for planted in PLANTED:
            assert planted.lower() not in text.lower(), place


async def _all_rows_as_text(connection: Connection) -> str:
    tables = await all_rows(
        connection, "select tablename from pg_tables where schemaname = 'tocsin' order by tablename"
    )
    texts = []
    for table in tables:
        query = sql.SQL("select t::text from tocsin.{} t").format(sql.Identifier(table["tablename"]))
        rows = await (await connection.execute(query)).fetchall()
        texts += [str(row) for row in rows]
    return "\n".join(texts)
