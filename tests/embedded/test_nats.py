"""NATS alone: its port, its readiness, and its errors."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.embedded.launchers import users_of
from tocsin.core.errors import Unreachable
from tocsin.embedded import Nats, binaries, embedded_nats, locks, nats, server


def _listen(port: int) -> socket.socket:
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", port))
    taken.listen()
    return taken


def _port(running: Nats) -> int:
    port = urlsplit(running.url).port
    assert port is not None
    return port


def _fake_binary(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    binary = folder / "nats-server"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    monkeypatch.setattr(binaries, "nats_binary", lambda: binary)


def test_the_port_is_kept_for_the_next_launcher(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as running:
        first = running.url
    with embedded_nats(tmp_path) as running:
        assert running.url == first


def test_the_port_lies_below_the_range_of_outgoing_connections(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as running:
        lowest_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        assert 1_024 <= _port(running) < lowest_outgoing


def test_a_remembered_port_that_is_taken_is_replaced(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as running:
        first = _port(running)
    with _listen(first), embedded_nats(tmp_path) as running:
        assert _port(running) != first


def test_a_port_that_is_taken_between_the_check_and_the_start_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded_nats(tmp_path) as running:
        first = _port(running)
    monkeypatch.setattr(nats, "_free", lambda _port: True)
    with _listen(first), embedded_nats(tmp_path) as running:
        assert _port(running) != first


@pytest.mark.parametrize("text", ["", "many", "-1", "0", "70000"])
def test_a_damaged_port_file_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "nats.port").write_text(text)
    with embedded_nats(tmp_path) as running:
        assert running.alive


def test_a_restart_keeps_its_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded_nats(tmp_path) as running:
        url, port = running.url, _port(running)
        running.kill()
        with _listen(port), monkeypatch.context() as shortened:
            shortened.setattr(server, "START_TIMEOUT_S", 0.2)
            with pytest.raises(Unreachable, match=f"found port {port} in use"):
                running.start()
        running.start()
        assert running.url == url


def test_another_server_on_the_port_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded_nats(tmp_path / "one") as one:
        (tmp_path / "two").mkdir()
        (tmp_path / "two" / "nats.port").write_text(str(_port(one)))
        _fake_binary(tmp_path, monkeypatch, "exec sleep 100")
        monkeypatch.setattr(nats, "_free", lambda _port: True)
        monkeypatch.setattr(server, "START_TIMEOUT_S", 0.5)
        with pytest.raises(Unreachable), embedded_nats(tmp_path / "two"):
            pass


def test_a_restart_that_fails_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded_nats(tmp_path / "data") as running:
        running.kill()
        with monkeypatch.context() as broken:
            _fake_binary(tmp_path, broken, "exec sleep 100")
            broken.setattr(server, "START_TIMEOUT_S", 0.3)
            with pytest.raises(Unreachable):
                running.start()
        assert not running.alive
        assert users_of(tmp_path / "data") == {}
        running.start()
        assert running.alive


def test_a_failing_server_is_shown_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_binary(tmp_path, monkeypatch, "echo out of luck; exit 4")
    with pytest.raises(Unreachable) as failure, embedded_nats(tmp_path / "data"):
        pass
    assert str(failure.value) == (
        f"nats did not start (exit code 4); its log '{tmp_path / 'data' / 'nats.log'}' ends with:\n"
        "    out of luck"
    )


def test_a_server_without_jetstream_is_never_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = binaries.nats_binary()
    _fake_binary(tmp_path, monkeypatch, f"sed -i '/jetstream/,$d' \"$2\"; exec '{real}' -c \"$2\"")
    log = tmp_path / "data" / "nats.log"
    looks: list[bool] = []

    def pause() -> None:
        looks.append("Server is ready" in log.read_text())
        if sum(looks) > 20:
            raise TimeoutError("asked often enough")
        locks.pause()

    monkeypatch.setattr(nats, "pause", pause)
    with pytest.raises(Unreachable, match="asked often enough"), embedded_nats(tmp_path / "data"):
        pass


def test_an_unusable_binary_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "nats_binary", lambda: tmp_path / "gone")
    with pytest.raises(Unreachable, match="nats could not be started in"), embedded_nats(tmp_path / "data"):
        pass
