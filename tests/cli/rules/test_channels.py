"""`tocsin channels`: the list without secrets, and a real test message to a real server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rules.actions.channel_tests import ChannelTester
from tests.cli.conftest import CommandLine
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


class Hook:
    def __init__(self) -> None:
        self.status = 200
        self.bodies: list[Any] = []
        self.headers: list[str] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                hook.headers.append(str(self.headers))
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


@contextmanager
def sender(settings: Settings, **variables: str) -> Iterator[None]:
    """The part of a worker that performs tests, in another thread with an environment of its own."""
    theirs = settings.model_copy()
    theirs._secret_variables = variables
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()

    async def serve() -> None:
        async with running(Service("channel tests", ChannelTester(theirs).run)):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture
def worker(settings: Settings) -> Iterator[None]:
    with sender(settings.model_copy(update={"egress_allow": "127.0.0.1"})):
        yield


@pytest.fixture
def applied(tocsin: CommandLine, hook: Hook, tmp_path: Path) -> CommandLine:
    path = tmp_path / "channels.yaml"
    path.write_text(
        f"channel: {{name: ops, webhook: {{url: '{hook.url}'}}}}\n---\n"
        f"channel: {{name: off, enabled: false, webhook: {{url: '{hook.url}'}}}}\n"
    )
    tocsin("apply", str(path))
    return tocsin


def test_the_secrets_of_the_operator_are_not_used(
    tocsin: CommandLine, settings: Settings, hook: Hook, tmp_path: Path
) -> None:
    """F7: a document of the database must not send what the environment of the operator holds."""
    path = tmp_path / "leak.yaml"
    path.write_text(
        f"channel: {{name: leak, webhook: {{url: '{hook.url}', headers: {{X-Leak: {{secret: github-token}}}}}}}}\n"
    )
    tocsin("apply", str(path))
    theirs = settings.model_copy(
        update={"egress_allow": "127.0.0.1", "secrets_bound": "github-token@127.0.0.1"}
    )
    operator = CommandLine(
        {
            **tocsin.environment,
            "TOCSIN_SECRET_GITHUB_TOKEN": "S3cretOfTheOperator",
            "TOCSIN_SECRETS_BOUND": "github-token@127.0.0.1",
            "TOCSIN_EGRESS_ALLOW": "127.0.0.1",
        }
    )
    with sender(theirs):
        answer = operator("channels", "test", "leak", exit_code=1)
    assert "the worker has no secret 'github-token'" in answer.out
    assert hook.bodies == []
    with sender(theirs, TOCSIN_SECRET_GITHUB_TOKEN="S3cretOfTheWorker"):
        operator("channels", "test", "leak")
    assert "S3cretOfTheWorker" in hook.headers[0]


def test_without_a_worker_the_command_says_so(
    applied: CommandLine, monkeypatch: pytest.MonkeyPatch, hook: Hook
) -> None:
    monkeypatch.setattr("rules.actions.channel_tests._TAKEN_WITHIN_S", 0.3)
    answer = applied("channels", "test", "ops", exit_code=2)
    assert "no worker took the test within 0.3 s: start one with `tocsin run worker`" in answer.err
    assert hook.bodies == []


@pytest.mark.usefixtures("worker")
def test_a_test_message_arrives_and_is_marked_as_a_test(applied: CommandLine, hook: Hook) -> None:
    assert applied("channels", "test", "ops").out.startswith("sent: ")
    assert (
        applied("channels", "test", "ops", "--transition", "resolved", "--json").json["state"] == "delivered"
    )
    assert "this is a test of the channel 'ops' by" in hook.bodies[0]["message"]
    assert len(hook.bodies) == 2
    assert hook.bodies[0] != hook.bodies[1]


@pytest.mark.usefixtures("worker")
def test_a_disabled_channel_can_be_tested(applied: CommandLine, hook: Hook) -> None:
    assert "the channel is not enabled: alarms do not use it" in applied("channels", "test", "off").out
    assert len(hook.bodies) == 1


@pytest.mark.usefixtures("worker")
def test_a_refusal_of_the_server_is_reported(applied: CommandLine, hook: Hook) -> None:
    hook.status = 404
    assert applied("channels", "test", "ops", exit_code=1).out.startswith("not sent: ")
    hook.status = 503
    assert "not sent, a retry may succeed: " in applied("channels", "test", "ops", exit_code=1).out


def test_the_guard_and_unknown_names_are_reported(
    applied: CommandLine, settings: Settings, hook: Hook
) -> None:
    with sender(settings):
        guarded = applied("channels", "test", "ops", exit_code=1)
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
        " from: a@example.com, to: [b@example.com, c@example.com]}}\n---\n"
        "channel: {name: pager, pagerduty: {routing_key: {secret: pagerduty-key}}}\n"
    )
    tocsin("apply", str(path))
    answer = tocsin("channels")
    assert "T0KEN" not in answer.out
    assert [line.split() for line in answer.lines[1:]] == [
        ["chat", "slack", "secret", "slack", "no", "yes"],
        ["hidden", "webhook", "secret", "hook-url", "yes", "yes"],
        ["hook", "webhook", "hooks.example.com", "yes", "yes"],
        ["mail", "email", "b@example.com,", "c@example.com", "yes", "no"],
        ["pager", "pagerduty", "events.pagerduty.com", "yes", "yes"],
    ]
    assert tocsin("channels", "--json").json[2] == {
        "name": "hook",
        "type": "webhook",
        "target": "hooks.example.com",
        "enabled": True,
        "send_resolved": True,
    }
