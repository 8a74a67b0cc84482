"""`tocsin channels`: the list without secrets, and a real test message to a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine


class Hook:
    def __init__(self) -> None:
        self.status = 200
        self.bodies: list[Any] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(hook.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


@pytest.fixture
def applied(tocsin: CommandLine, hook: Hook, tmp_path: Path) -> CommandLine:
    path = tmp_path / "channels.yaml"
    path.write_text(
        f"channel: {{name: ops, webhook: {{url: '{hook.url}'}}}}\n---\n"
        f"channel: {{name: off, enabled: false, webhook: {{url: '{hook.url}'}}}}\n"
    )
    tocsin("apply", str(path))
    return CommandLine({**tocsin.environment, "TOCSIN_EGRESS_ALLOW": "127.0.0.1"})


def test_a_test_message_arrives_and_is_marked_as_a_test(applied: CommandLine, hook: Hook) -> None:
    assert applied("channels", "test", "ops").out.startswith("sent: ")
    assert (
        applied("channels", "test", "ops", "--transition", "resolved", "--json").json["state"] == "delivered"
    )
    assert "this is a test of the channel 'ops' by" in hook.bodies[0]["message"]
    assert len(hook.bodies) == 2
    assert hook.bodies[0] != hook.bodies[1]


def test_a_disabled_channel_can_be_tested(applied: CommandLine, hook: Hook) -> None:
    assert "the channel is not enabled: alarms do not use it" in applied("channels", "test", "off").out
    assert len(hook.bodies) == 1


def test_a_refusal_of_the_server_is_reported(applied: CommandLine, hook: Hook) -> None:
    hook.status = 404
    assert applied("channels", "test", "ops", exit_code=1).out.startswith("not sent: ")
    hook.status = 503
    assert "not sent, a retry may succeed: " in applied("channels", "test", "ops", exit_code=1).out


def test_the_guard_and_unknown_names_are_reported(
    applied: CommandLine, tocsin: CommandLine, hook: Hook
) -> None:
    guarded = tocsin("channels", "test", "ops", exit_code=1)
    assert "TOCSIN_EGRESS_ALLOW" in guarded.out
    assert hook.bodies == []
    assert "there is no channel 'pos'" in applied("channels", "test", "pos", exit_code=1).err


def test_the_list_shows_targets_and_no_secret(tocsin: CommandLine, tmp_path: Path) -> None:
    assert tocsin("channels").out == (
        "no channels are applied: write a `channel` document and `tocsin apply` it\n"
    )
    path = tmp_path / "channels.yaml"
    path.write_text(
        "channel: {name: hook, webhook: {url: 'https://hooks.example.com/T0KEN'}}\n---\n"
        "channel: {name: hidden, webhook: {url: {secret: hook-url}, headers: {X: {secret: hook-x}}}}\n---\n"
        "channel: {name: chat, enabled: false, slack: {url: {secret: slack}}}\n---\n"
        "channel: {name: mail, send_resolved: false, email: {smtp: {host: smtp.example.com},"
        " from: a@example.com, to: [b@example.com, c@example.com]}}\n"
    )
    tocsin("apply", str(path))
    answer = tocsin("channels")
    assert "T0KEN" not in answer.out
    assert [line.split() for line in answer.lines[1:]] == [
        ["chat", "slack", "secret", "slack", "no", "yes"],
        ["hidden", "webhook", "secret", "hook-url", "yes", "yes"],
        ["hook", "webhook", "hooks.example.com", "yes", "yes"],
        ["mail", "email", "b@example.com,", "c@example.com", "yes", "no"],
    ]
    assert tocsin("channels", "--json").json[2] == {
        "name": "hook",
        "type": "webhook",
        "target": "hooks.example.com",
        "enabled": True,
        "send_resolved": True,
    }
