"""Both servers together: start, stop, restart, and the data directory they share."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import nats
import psycopg
import pytest

from tests.embedded.launchers import script_launcher, users_of
from tests.wait import eventually_sync
from tocsin.core.errors import InvalidInput, Refused
from tocsin.embedded import binaries, embedded_servers, server
from tocsin.embedded.server import EmbeddedServer


def _publish(url: str, subject: str) -> None:
    async def publish() -> None:
        client = await nats.connect(url)
        stream = client.jetstream()
        await stream.add_stream(name="kept", subjects=["kept.>"])
        await stream.publish(subject, b"one")
        await client.close()

    asyncio.run(publish())


def _stored(url: str) -> int:
    async def stored() -> int:
        client = await nats.connect(url)
        info = await client.jetstream().stream_info("kept")
        await client.close()
        return info.state.messages

    return asyncio.run(stored())


def _is_alive(each: EmbeddedServer) -> bool:
    return each.alive


def test_data_survives_stops_kills_and_new_launchers_at_the_same_addresses(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with embedded_servers(data_dir) as servers:
        first = (servers.postgres_url, servers.nats_url)
        with psycopg.connect(servers.postgres_url) as connection:
            connection.execute("create table kept (id int)")
            connection.execute("insert into kept values (7)")
        _publish(servers.nats_url, "kept.a")
        for each in (servers.postgres, servers.nats):
            before = each.pid
            each.kill()
            assert not _is_alive(each)
            each.start()
            assert _is_alive(each)
            assert each.pid != before
            each.stop()
            assert not _is_alive(each)
            each.start()
        assert (servers.postgres_url, servers.nats_url) == first
        assert _stored(servers.nats_url) == 1
    assert users_of(data_dir) == {}

    with embedded_servers(data_dir) as servers:
        assert (servers.postgres_url, servers.nats_url) == first
        with psycopg.connect(servers.postgres_url) as connection:
            assert connection.execute("select id from kept").fetchall() == [(7,)]
        assert _stored(servers.nats_url) == 1


@pytest.mark.parametrize(
    ("name", "socket_inside"),
    [
        ("with space and 100% and %20", True),
        ("é-ü-漢 'quote' back\\slash", True),
        ('comma, and "double quote"', False),
        ("long" * 40, False),
    ],
    ids=["percent", "unicode", "comma", "long"],
)
def test_any_path_can_hold_the_data(short_path: Path, name: str, socket_inside: bool) -> None:
    data_dir = short_path / name
    with embedded_servers(data_dir, durable=False) as servers:
        url = servers.postgres_url
        psql = binaries.postgres_bin_dir(18) / "psql"
        answer = subprocess.run([psql, url, "-Atc", "select 6 * 7"], capture_output=True, check=True)
        assert answer.stdout == b"42\n"
        _publish(servers.nats_url, "kept.a")
        servers.postgres.stop()
        servers.postgres.start()
        assert servers.postgres_url == url
        with psycopg.connect(url) as connection:
            socket_dir = Path(connection.info.host)
        assert socket_dir.stat().st_mode & 0o077 == 0
        assert (data_dir / "nats" / "jetstream").is_dir()
    assert (data_dir in socket_dir.parents) == socket_inside
    assert socket_dir.exists() == socket_inside


def test_a_private_socket_directory_left_by_a_killed_launcher_is_used_again(tmp_path: Path) -> None:
    data_dir = tmp_path / ("long" * 40)
    with script_launcher(data_dir) as launcher:
        _, _, postgres_url, _ = launcher.wait_until_ready()
        launcher.kill()
    with embedded_servers(data_dir, durable=False) as servers:
        assert servers.postgres_url == postgres_url
        socket_dir = Path((data_dir / "postgres.socket").read_text())
    # Another process may own that name by the next start.
    socket_dir.mkdir(mode=0o755)
    try:
        with embedded_servers(data_dir, durable=False) as servers:
            assert servers.postgres_url != postgres_url
    finally:
        socket_dir.rmdir()


def test_a_second_launcher_is_refused_with_the_process_that_holds_the_directory(warm_path: Path) -> None:
    with script_launcher(warm_path) as launcher:
        launcher.wait_until_ready()
        with pytest.raises(Refused) as refusal, embedded_servers(warm_path):
            pass
        assert str(refusal.value) == (
            f"the data directory '{warm_path}' is in use by process {launcher.pid}: "
            "stop it, or choose another with --data"
        )


def test_the_same_process_cannot_launch_twice_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    with embedded_servers(tmp_path / "real", durable=False) as servers:
        with pytest.raises(Refused, match=f"in use by process {os.getpid()}:"), embedded_servers(link):
            pass
        assert servers.postgres.alive


def test_a_server_that_fails_to_start_stops_the_other(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "notes.txt").write_text("mine")
    with pytest.raises(Refused, match="has files that are not postgres data"), embedded_servers(tmp_path):
        pass
    assert users_of(tmp_path) == {}
    assert (tmp_path / "postgres" / "notes.txt").read_text() == "mine"


def test_frozen_servers_are_stopped_too(warm_path: Path) -> None:
    with embedded_servers(warm_path, durable=False) as servers:
        for each in (servers.postgres, servers.nats):
            os.kill(each.pid, signal.SIGSTOP)
    assert users_of(warm_path) == {}


def test_a_server_that_ignores_the_request_to_stop_is_killed(
    warm_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded_servers(warm_path, durable=False) as servers:
        monkeypatch.setattr(server, "STOP_TIMEOUT_S", 0.2)
        servers.postgres.stop_signal = signal.SIGCONT
        servers.postgres.stop()
        assert not servers.postgres.alive
        monkeypatch.undo()
    eventually_sync(lambda: users_of(warm_path) == {}, "the backends of a killed postmaster end")


@pytest.mark.parametrize("name", ["line\nbreak", "tab\there"])
def test_a_control_character_in_the_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="control character"), embedded_servers(tmp_path / name):
        pass
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_created_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be used"), embedded_servers(tmp_path / "file" / "data"):
        pass
