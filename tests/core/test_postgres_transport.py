"""Postgres on another host is not reached in clear text."""

from __future__ import annotations

import pytest

from tocsin.core.db import connect
from tocsin.core.errors import WrongAddress
from tocsin.core.postgres_transport import refuse_clear_text, unverified_host
from tocsin.core.settings import Settings


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@db.example/tocsin",
        "postgresql://me@db.example/tocsin?sslmode=prefer",
        "host=localhost,db.example user=me",
        "host=localhost hostaddr=192.0.2.1",
        "host=db.example sslmode=disable",
    ],
)
async def test_clear_text_to_another_host_is_refused(address: str) -> None:
    with pytest.raises(WrongAddress, match=r"clear text .*sslmode=verify-full .*TOCSIN_ALLOW_CLEAR_TEXT=1"):
        await connect(Settings(postgres=address), "test")
    refuse_clear_text(Settings(allow_clear_text=True), address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:///tocsin?host=/run/postgres",
        "postgresql://me@localhost/tocsin",
        "postgresql://me@[::1]/tocsin",
        "host=127.0.0.2",
        "host=db.example sslmode=verify-full",
        "host=db.example sslmode=require",
        "dbname=tocsin",
    ],
)
def test_loopback_sockets_and_tls_are_used(address: str) -> None:
    refuse_clear_text(Settings(), address)


def test_the_environment_of_libpq_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example")
    with pytest.raises(WrongAddress, match=r"'db\.example'"):
        refuse_clear_text(Settings(), "dbname=tocsin")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    refuse_clear_text(Settings(), "dbname=tocsin")


def test_tls_without_verification_is_reported() -> None:
    assert unverified_host("host=db.example sslmode=require") == "db.example"
    assert unverified_host("host=db.example sslmode=verify-full") == ""
    assert unverified_host("host=localhost") == ""
