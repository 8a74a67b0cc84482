"""F4, F18, F19: what other users of the machine can do to an embedded instance."""

from __future__ import annotations

import os
from pathlib import Path

import nats
import psycopg
import pytest
from nats.errors import Error as NatsError

from tests.wait import eventually
from tocsin.core.errors import Refused
from tocsin.embedded import embedded_nats, embedded_postgres, embedded_servers

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


async def test_nats_requires_the_password(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as running:
        for url in (running.shown_url, running.url.replace("nats://tocsin:", "nats://tocsin:x")):

            async def ignore(_: Exception) -> None:
                pass

            with pytest.raises(NatsError):
                await nats.connect(url, allow_reconnect=False, connect_timeout=10, error_cb=ignore)
        client = await nats.connect(running.url)
        await client.jetstream().account_info()
        await client.close()


def test_the_password_is_random_kept_and_not_shown(tmp_path: Path) -> None:
    with embedded_nats(tmp_path / "a") as first, embedded_nats(tmp_path / "b") as second:
        one, other = first.url, second.url
        assert "@" not in first.shown_url
    assert one.partition("@")[0] != other.partition("@")[0]
    with embedded_nats(tmp_path / "a") as first:
        assert first.url == one


def test_every_file_is_private(tmp_path: Path) -> None:
    with embedded_servers(tmp_path / "data", durable=False):
        files = [path for path in (tmp_path / "data").iterdir() if path.is_file()]
        assert {path.name for path in files} >= {"nats.conf", "nats.password", "nats.log", "postgres.log"}
        assert {path.name: path.stat().st_mode & 0o077 for path in files if path.stat().st_mode & 0o077} == {}


def test_servers_get_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_SECRET_SLACK_URL", "S3cret")
    monkeypatch.setenv("SMTP_PASSWORD", "S3cret")
    with embedded_servers(tmp_path / "data", durable=False) as servers:
        for pid in (servers.postgres.pid, servers.nats.pid):
            assert b"S3cret" not in Path(f"/proc/{pid}/environ").read_bytes()
        with psycopg.connect(servers.postgres_url) as connection:
            assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "name", ["launcher.lock", "nats.lock", "nats.log", "nats.conf", "nats.password", "nats.port.new"]
)
def test_a_link_in_the_data_directory_is_not_followed(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    (data_dir / name).symlink_to(victim)
    with pytest.raises(Refused, match="is a link, which is not followed"), embedded_nats(data_dir):
        pass
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["postgres", "nats"])
def test_a_linked_directory_is_not_taken_over(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "PG_VERSION").write_text("18\n")
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    (data_dir / name).symlink_to(victim)
    start = embedded_postgres if name == "postgres" else embedded_nats
    with pytest.raises(Refused, match="is a link, which is not followed"), start(data_dir):
        pass
    assert victim.stat().st_uid == os.geteuid()
    assert (victim / "PG_VERSION").stat().st_uid == os.geteuid()


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    data_dir.chmod(0o777)
    with pytest.raises(Refused, match="can be written by other users"), embedded_nats(data_dir):
        pass


@as_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    os.chown(data_dir, 1, 1)
    with pytest.raises(Refused, match="belongs to the user 1"), embedded_nats(data_dir):
        pass


@pytest.mark.parametrize("user", ["clock", "cdc", "worker", "local"])
async def test_each_service_has_a_user_that_may_do_only_its_own_work(tmp_path: Path, user: str) -> None:
    forbidden: list[str] = []

    async def note(error: Exception) -> None:
        forbidden.append(str(error).lower())

    subjects = {
        "$KV.tocsin-lease.clock": ("clock",),
        "$KV.tocsin-lease.cdc": ("cdc",),
        "tocsin.v1.event.x": ("cdc",),
        "$JS.API.STREAM.DELETE.tocsin": (),
        "$JS.API.STREAM.UPDATE.KV_tocsin-lease": (),
        "$JS.API.STREAM.PURGE.tocsin-data": (),
        "tocsin.v1.calculated.0.a.b": (),
        "tocsin.v1.datapoint.a.b": ("worker", "local"),
        "reports.any": ("worker", "local"),
    }
    with embedded_nats(tmp_path) as running:
        client = await nats.connect(running.url_of(user), error_cb=note, inbox_prefix=f"_INBOX_{user}")
        for subject in subjects:
            await client.publish(subject, b"")
        await client.publish("$JS.API.STREAM.DELETE.last", b"")

        async def are_all_answered() -> bool:
            return any("stream.delete.last" in text for text in forbidden)

        await eventually(are_all_answered, "the server has rejected what it rejects")
        await client.close()
    denied = {subject for subject in subjects if any(f'"{subject.lower()}"' in text for text in forbidden)}
    assert denied == {subject for subject, users in subjects.items() if user not in users}


def test_the_passwords_of_users_follow_from_a_secret_that_they_do_not_reveal(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as running:
        secret = (tmp_path / "nats.password").read_text().strip()
        passwords = {running.url_of(user).split("@")[0].rpartition(":")[2] for user in ("clock", "cdc")}
        assert len(passwords | {secret}) == 3
        assert (tmp_path / "nats.conf").stat().st_mode & 0o077 == 0
