"""`tocsin channels test`: a real message to a real server, and clear words when it cannot be sent."""

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


def test_a_test_arrives_and_says_that_it_is_one(applied: CommandLine, hook: Hook) -> None:
    assert applied("channels", "test", "ops").out.startswith("sent: ")
    assert applied("channels", "test", "ops", "--resolved", "--json").json["state"] == "delivered"
    assert "this is a test of the channel 'ops' by" in hook.bodies[0]["message"]
    assert len(hook.bodies) == 2
    assert hook.bodies[0] != hook.bodies[1]


def test_a_channel_that_is_off_can_be_tried_and_says_so(applied: CommandLine, hook: Hook) -> None:
    assert "the channel is not enabled: alarms do not use it" in applied("channels", "test", "off").out
    assert len(hook.bodies) == 1


def test_what_the_server_refuses_is_said(applied: CommandLine, hook: Hook) -> None:
    hook.status = 404
    assert applied("channels", "test", "ops", exit_code=1).out.startswith("not sent: ")
    hook.status = 503
    assert "worth another try" in applied("channels", "test", "ops", exit_code=1).out


def test_the_guard_and_unknown_names_are_said(applied: CommandLine, tocsin: CommandLine, hook: Hook) -> None:
    guarded = tocsin("channels", "test", "ops", exit_code=1)
    assert "TOCSIN_EGRESS_ALLOW" in guarded.out
    assert hook.bodies == []
    assert "there is no channel 'pos'" in applied("channels", "test", "pos", exit_code=1).err
