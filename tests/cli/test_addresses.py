"""F8: the file with the addresses of an `up` is used only if no other user could have written it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tocsin.core.addresses import publish_addresses, read_addresses

NATS = "nats://tocsin:x@127.0.0.1:12345"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TOCSIN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / ".tocsin"
    directory.mkdir(mode=0o700)
    return directory


def postgres(directory: Path) -> str:
    return f"postgresql://postgres@/tocsin?host={directory}/postgres&port=5432"


def test_our_own_file_is_used_and_private(data: Path) -> None:
    with publish_addresses(data, postgres(data), NATS):
        assert read_addresses() == {"postgres": postgres(data), "nats": NATS}
        assert (data / "addresses.json").stat().st_mode & 0o777 == 0o600
    assert read_addresses() == {}


@pytest.mark.parametrize(
    ("postgres_url", "nats_url"),
    [
        ("postgresql://attacker.example/tocsin", NATS),
        ("postgresql://127.0.0.1:5432/tocsin", NATS),
        ("postgresql:///tocsin?host=attacker.example", NATS),
        ("postgresql:///tocsin?host=/tmp/attacker", NATS),
        ("postgresql:///tocsin?host=DATA/../../tmp/attacker", NATS),
        ("postgresql:///tocsin?host=DATA&hostaddr=192.0.2.1", NATS),
        ("host=attacker.example password=x", NATS),
        ("OWN", "nats://attacker.example:4222"),
        ("OWN", "nats://127.0.0.1:4222,nats://attacker.example:4222"),
        ("OWN", "tls://127.0.0.1:4222"),
    ],
)
def test_an_address_beyond_the_directory_is_ignored(data: Path, postgres_url: str, nats_url: str) -> None:
    url = postgres(data) if postgres_url == "OWN" else postgres_url.replace("DATA", str(data))
    (data / "addresses.json").write_text(json.dumps({"postgres": url, "nats": nats_url}))
    assert read_addresses() == {}


def test_a_file_that_others_can_write_is_ignored(data: Path) -> None:
    with publish_addresses(data, postgres(data), NATS):
        (data / "addresses.json").chmod(0o666)
        assert read_addresses() == {}
        (data / "addresses.json").chmod(0o600)
        data.chmod(0o777)
        assert read_addresses() == {}


def test_a_link_is_ignored(data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "addresses.json"
    elsewhere.write_text(json.dumps({"postgres": postgres(data), "nats": NATS}))
    (data / "addresses.json").symlink_to(elsewhere)
    assert read_addresses() == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_directory_of_another_user_is_ignored(data: Path) -> None:
    with publish_addresses(data, postgres(data), NATS):
        os.chown(data, 1, 1)
        assert read_addresses() == {}
