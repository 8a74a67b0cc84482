"""The doctor is red for each insecure setting, and for a lease that something else holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings
from tocsin.doctor.security_checks import check_epoch_holder, check_settings, nats_findings, secure_finding


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("postgres", "host=db.example sslmode=require", "the certificate of postgres at 'db.example'"),
        ("metrics", "0.0.0.0:9464", "every client that reaches 0.0.0.0:9464 can read the metrics"),
        ("api_trusted_proxies", "0.0.0.0/0", "lets almost every address name a person"),
        ("api_trusted_proxies", "10.0.0.1, ::/0", "lets almost every address name a person"),
        ("egress_allow", "hooks.internal, 0.0.0.0/0", "lets deliveries reach almost every internal address"),
    ],
)
def test_an_insecure_setting_is_red(setting: str, value: str, text: str) -> None:
    (finding,) = check_settings(Settings(**{setting: value}))  # type: ignore[arg-type]
    assert (finding.state, text in finding.text, bool(finding.remedy)) == ("red", True, True), finding


def test_an_api_without_tls_is_red_beyond_this_host() -> None:
    (finding,) = check_settings(Settings(api="0.0.0.0:8470", api_plain=True))
    assert "plain HTTP at 0.0.0.0:8470" in finding.text
    assert check_settings(Settings(api="127.0.0.1:8470", api_plain=True)) == []


def test_secure_settings_are_not_red() -> None:
    settings = Settings(
        postgres="host=db.example sslmode=verify-full",
        metrics="0.0.0.0:9464",
        metrics_token="x" * 32,
        api_trusted_proxies="10.0.0.0/8",
        egress_allow="10.1.0.0/16, hooks.internal:443",
    )
    assert check_settings(settings) == []
    assert [finding.state for finding in secure_finding([])] == ["ok"]


def test_credentials_that_other_users_can_read_are_red(tmp_path: Path) -> None:
    for name, mode in (("open", 0o644), ("closed", 0o600)):
        (tmp_path / name).write_text("secret")
        (tmp_path / name).chmod(mode)
    (finding,) = check_settings(Settings(secrets_dir=str(tmp_path)))
    assert (str(tmp_path / "open") in finding.text, "secret" in finding.text) == (True, False)
    (finding,) = check_settings(Settings(nats_creds=str(tmp_path / "open")))
    assert "can read the credentials" in finding.text


def test_nats_without_credentials_or_in_clear_text_is_red() -> None:
    assert [f.state for f in nats_findings("127.0.0.1", asks=False, encrypted=False)] == ["red"]
    assert [f.state for f in nats_findings("nats.example", asks=True, encrypted=False)] == ["red"]
    assert nats_findings("nats.example", asks=True, encrypted=True) == []
    assert nats_findings("127.0.0.1", asks=True, encrypted=False) == []


def test_a_lease_of_another_than_the_leading_clock_is_red() -> None:
    (finding,) = check_epoch_holder("evil/1/00000000", "host/2/11111111")
    assert (finding.state, "evil/1/00000000 holds the lease" in finding.text) == ("red", True)
    assert check_epoch_holder("host/2/11111111", "host/2/11111111") == []
    assert check_epoch_holder(None, "host/2/11111111") == check_epoch_holder("host/2/11111111", None) == []


async def test_the_doctor_finds_a_lease_that_something_else_wrote(
    settings: Settings, connection: Connection, tocsin: CommandLine
) -> None:
    await asyncio.to_thread(tocsin, "streams", "create")
    await connection.execute("select tocsin.take_over(0, 'host/2/11111111')")
    bus = await connect_bus(settings, "test")
    await bus.publish(f"$KV.{settings.lease_bucket}.clock", b"evil/1/00000000")
    await bus.flush()
    tocsin.environment["TOCSIN_LEASE_TTL_S"] = "1"

    async def is_found() -> bool:
        answer = await asyncio.to_thread(tocsin.answer, "doctor")
        return "evil/1/00000000 holds the lease" in answer.out

    await eventually(is_found, "the doctor compares lease and epoch", 30)
    await bus.close()
