"""Each permission of deploy/nats: the server accepts the allowed requests and rejects others."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from structlog.testing import capture_logs

from tests.deploy.guarded_nats import CONFIG, ROLES, USERS, GuardedNats, api_of_user, guarded_nats, passwords
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.errors import Unreachable
from tocsin.core.settings import Settings
from tocsin.embedded import binaries
from tocsin.nats_access.config import local_subject
from tocsin.nats_access.example import NAMESPACE, example_roles, permissions_file
from tocsin.nats_access.roles import RECORD_KINDS, USER_INFO, streams_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedNats]:
    with guarded_nats(tmp_path_factory.mktemp("guarded")) as started:
        yield started


@asynccontextmanager
async def connected(server: GuardedNats, user: str) -> AsyncIterator[tuple[Client, list[str]]]:
    """A connection of that user, and the permission errors that the server sends."""
    forbidden: list[str] = []
    bus = await connect_bus(
        server.settings_of(user, Settings()), "test", lambda error: forbidden.append(str(error))
    )
    try:
        yield bus, forbidden
    finally:
        await bus.close()


async def refused(server: GuardedNats, user: str, *, publish: str = "", subscribe: str = "") -> bool:
    async with connected(server, user) as (bus, forbidden):
        if publish:
            await bus.publish(publish, b"")
        else:
            await bus.subscribe(subscribe)
        # No user may publish this. Errors arrive in order, so any other is here by then.
        await bus.publish("no.user", b"")

        async def is_rejected() -> bool:
            return any("no.user" in error for error in forbidden)

        await eventually(is_rejected, "the server rejects the request")
        return len(forbidden) > 1


RECORDS = [f"tocsin.v1.{kind}.x" for kind in RECORD_KINDS]
STREAMS = streams_of("tocsin")
CHANGING = [
    f"$JS.API.STREAM.{verb}.{stream}"
    for verb in ("CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE", "RESTORE", "SNAPSHOT")
    for stream in (*STREAMS, "evil")
]


async def allowed_of(server: GuardedNats, user: str, subjects: Sequence[str]) -> list[str]:
    """The subjects that the user may publish, in one connection."""
    local = {local_subject(subject, api_of_user(user)).lower(): subject for subject in subjects}
    async with connected(server, user) as (bus, forbidden):
        for subject in local.values():
            await bus.publish(local_subject(subject, bus.api), b"")  # type: ignore[attr-defined]
        await bus.publish("no.user", b"")

        async def is_rejected() -> bool:
            return any("no.user" in error for error in forbidden)

        await eventually(is_rejected, "the server rejects the request")
        denied = " ".join(forbidden).lower()
        return [subject for name, subject in local.items() if f'"{name}"' not in denied]


@pytest.mark.parametrize("user", USERS)
async def test_only_the_publisher_and_the_administrator_write_records(server: GuardedNats, user: str) -> None:
    assert await allowed_of(server, user, RECORDS) == (RECORDS if user in ("cdc", "admin") else [])


@pytest.mark.parametrize("user", USERS)
async def test_no_running_service_creates_changes_or_empties_a_stream(server: GuardedNats, user: str) -> None:
    dead = ("tocsin-dead", "tocsin-consumers-dead")
    expected = {
        "api": ["$JS.API.STREAM.MSG.DELETE.tocsin-dead"],
        "operator": [
            f"$JS.API.STREAM.{verb}.{stream}" for verb in ("PURGE", "MSG.DELETE") for stream in dead
        ],
        "admin": [
            *(f"$JS.API.STREAM.{verb}.{stream}" for verb in ("CREATE", "UPDATE") for stream in STREAMS),
            "$JS.API.STREAM.DELETE.tocsin",
            "$JS.API.STREAM.PURGE.tocsin-data",
            *(f"$JS.API.STREAM.MSG.DELETE.{stream}" for stream in dead),
        ],
    }
    if user == "admin":
        # Not tried: the server would delete the stream of the other tests.
        assert set(expected["admin"]) == {s for s in ROLES["admin"].publish if s in CHANGING}
        return
    assert await allowed_of(server, user, CHANGING) == expected.get(user, [])


@pytest.mark.parametrize("user", USERS)
async def test_no_user_can_read_or_forge_the_answers_for_another(server: GuardedNats, user: str) -> None:
    """An answer confirms to the publisher that records are stored: only the server may send it."""
    others = [other for other in USERS if other != user]
    assert all([await refused(server, user, subscribe=f"_INBOX_{other}.>") for other in others[:3]])
    assert await allowed_of(server, user, [f"_INBOX_{other}.x" for other in USERS]) == []
    assert await refused(server, user, publish="_INBOX.x")


@pytest.mark.parametrize(
    ("user", "denied"),
    [
        ("clock", ["$KV.tocsin-lease.cdc", "$JS.API.STREAM.INFO.tocsin", "tocsin.v1.ingest.event"]),
        ("cdc", ["$KV.tocsin-lease.clock", "$JS.API.CONSUMER.CREATE.tocsin", "tocsin.v1.datapoint.a.b"]),
        (
            "worker",
            [
                "$KV.tocsin-lease.clock",
                "$JS.API.CONSUMER.CREATE.tocsin",
                "$JS.API.CONSUMER.CREATE.tocsin.billing",
                "$JS.API.CONSUMER.DELETE.tocsin.billing",
                "$JS.API.CONSUMER.MSG.NEXT.tocsin.billing",
                "$JS.ACK.tocsin.billing.1.1.1.1.1",
                "tocsin.v1.ingest.event",
                "elsewhere",
            ],
        ),
        (
            "producer",
            ["tocsin.v1.data.0.a.b", "tocsin.v1.calculated.0.a.b", "tocsin.v1.report.a.0", "$JS.API.INFO"],
        ),
        (
            "plant-7",
            [
                *("tocsin.v1.datapoint.plant-8.temperature", "tocsin.v1.ingest.event.plant-8"),
                "tocsin.v1.ingest.event",
            ],
        ),
        (
            "billing",
            [
                "$JS.API.CONSUMER.CREATE.tocsin",
                "$JS.API.CONSUMER.CREATE.tocsin.shipping",
                "$JS.API.CONSUMER.DELETE.tocsin.shipping",
                "$JS.API.CONSUMER.MSG.NEXT.tocsin.actions",
                "$JS.ACK.tocsin.shipping.1.1.1.1.1",
                "$JS.API.CONSUMER.CREATE.tocsin-data.billing",
                "tocsin.dead.shipping.7",
                "$KV.tocsin-consumers.shipping",
                "tocsin.v1.ingest.event",
                "tocsin.v1.datapoint.a.b",
            ],
        ),
        (
            "shipping",
            [
                "$JS.API.STREAM.MSG.GET.tocsin",
                "$JS.API.CONSUMER.CREATE.tocsin.shipping",
                "$JS.API.CONSUMER.CREATE.tocsin.shipping.tocsin.v1.>",
            ],
        ),
        (
            "operator",
            [
                "$KV.tocsin-lease.clock",
                "tocsin.v1.ingest.zz",
                "tocsin.dead.billing.7",
                "$JS.API.CONSUMER.CREATE.tocsin",
                "$JS.API.CONSUMER.CREATE.tocsin.billing",
                "$JS.API.CONSUMER.MSG.NEXT.tocsin.billing",
                "$JS.API.CONSUMER.PAUSE.tocsin.actions",
                "$JS.ACK.tocsin.billing.1.1.1.1.1",
            ],
        ),
        (
            "api",
            [
                "$KV.tocsin-lease.clock",
                "$JS.API.CONSUMER.CREATE.tocsin.billing",
                "$JS.API.CONSUMER.DELETE.tocsin.billing",
                "$JS.ACK.tocsin.billing.1.1.1.1.1",
            ],
        ),
        ("admin", ["$KV.tocsin-lease.cdc", "$JS.API.STREAM.CREATE.evil"]),
    ],
)
async def test_each_user_may_do_what_its_role_needs_and_no_more(
    server: GuardedNats, user: str, denied: list[str]
) -> None:
    own = [s for s in ROLES[user].publish if not s.startswith("$JS.API.STREAM.") and s != USER_INFO]
    samples = [subject.replace("*", "x").replace(">", "x") for subject in own]
    assert await allowed_of(server, user, samples) == samples
    assert await allowed_of(server, user, denied) == []


def test_the_file_is_the_one_that_the_roles_give() -> None:
    """`python -m tocsin.nats_access` writes it."""
    assert (CONFIG / "permissions.conf").read_text() == permissions_file(NAMESPACE, example_roles())


async def test_a_wrong_password_is_refused(server: GuardedNats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.core.bus._CONNECT_S", 3.0)
    wrong = Settings(nats=server.url.replace("nats://", "nats://cdc:guess@"))
    with pytest.raises(Unreachable, match="Authorization"):
        await connect_bus(wrong, "test")


def test_the_server_accepts_the_example_configuration(tmp_path: Path) -> None:
    """Checks nats.conf with the server itself."""
    shutil.copytree(CONFIG, tmp_path / "nats")
    config = tmp_path / "nats" / "nats.conf"
    config.write_text(config.read_text().replace("/var/lib/nats", str(tmp_path / "store")))
    checked = subprocess.run(
        [binaries.nats_binary(), "-t", "-c", config],
        env={**os.environ, **passwords()},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr


async def test_a_forbidden_request_is_logged_by_the_service(server: GuardedNats) -> None:
    with capture_logs() as logs:
        bus = await connect_bus(server.settings_of("clock", Settings()), "test")
        await bus.publish("tocsin.v1.event.x", b"")

        async def is_logged() -> bool:
            return any(line["event"].startswith("nats permission missing") for line in logs)

        await eventually(is_logged, "the error is logged")
        await bus.close()
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert "tocsin.v1.event.x" in str(line["error"])
