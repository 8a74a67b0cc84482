"""`send`, `emit`, `series` and `dead-letters`, with a worker that runs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.conftest import CommandLine, environment_of
from tests.cli.terminal import TOCSIN
from tests.rules.lanes.lane_setup import has_stream, jetstream
from tests.wait import eventually, eventually_sync
from tocsin.core.settings import Settings


@pytest.fixture
def services(settings: Settings) -> Iterator[None]:
    """A publisher and a worker, as processes of their own."""
    environment = {**os.environ, **{key: value or "" for key, value in environment_of(settings).items()}}
    command = [*TOCSIN, "run"]
    processes = [
        subprocess.Popen([*command, role], env=environment, stderr=subprocess.DEVNULL)
        for role in ("cdc", "worker")
    ]
    try:
        asyncio.run(_when_made(settings))
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(30)


async def _when_made(settings: Settings) -> None:
    async def are_made() -> bool:
        wanted = (settings.data_stream, settings.ingest_stream)
        return all([await has_stream(settings, name) for name in wanted])

    await eventually(are_made, "the streams are made", within=60)


def test_sent_and_rejected_messages_are_listed(
    tocsin: CommandLine, settings: Settings, services: None
) -> None:
    datapoints_are_series(tocsin)
    an_event_is_in_the_log_once(tocsin)
    dead_letters_are_listed_newest_first(tocsin, settings)


def datapoints_are_series(tocsin: CommandLine) -> None:
    assert tocsin("series").out == "no datapoint has arrived yet\n"
    sent = tocsin("send", "plant 7", "dsp.temperature", "66.5", "--label", "zone=north")
    assert sent.out == "sent dsp.temperature of 'plant 7': 66.5\n"
    assert tocsin("send", "plant 7", "door", "open", "--json").json["value"] == "open"
    tocsin("send", "a", "number", "7", "--text")
    for words, value in ((["-6.5"], -6.5), (["-.5", "--label", "z=-1", "--text"], "-.5")):
        assert tocsin("send", "plant 7", "door", *words, "--json").json["value"] == value
    refused = tocsin("send", "plant 7", "door", "5", "--lable", "x=y", exit_code=2)
    assert "--lable" in refused.err
    health = tocsin("send", "cooling", "system.health", "ok", exit_code=1).err
    assert (
        health == "tocsin: 'system.health' is reserved for the health of systems: send it under another key\n"
    )

    eventually_sync(lambda: len(tocsin("series", "--json").json) == 3, "three series are listed", within=30)
    header, *lines = tocsin("series").lines
    assert header.split() == [
        "OWNER",
        "KEY",
        "VALUE",
        "MEASURED",
        "ARRIVED",
        "STATUS",
        "DEADLINE",
        "CAUSE",
    ]
    assert [line.split()[:2] for line in lines] == [["a", "number"], ["plant", "7"], ["plant", "7"]]
    assert '"7"' in lines[0]
    found = tocsin("series", "--owner", "plant 7", "--key", "dsp.*", "--json").json
    assert [(row["value"], row["labels"], row["freshness"]) for row in found] == [
        (66.5, {"zone": "north"}, "fresh")
    ]
    assert found[0]["age_s"] >= 0
    assert tocsin("series", "--stale").out == "no series match\n"
    assert tocsin("series", "--key", "dsp.t*", exit_code=1).err.startswith("tocsin: 'dsp.t*' is not a key")
    assert len(tocsin("series", "--limit", "1", "--json").json) == 1


def an_event_is_in_the_log_once(tocsin: CommandLine) -> None:
    words = ("emit", "order-shipped", "--owner", "plant 7", "--payload", '{"n": 1}', "--key", "order-17")
    first = tocsin(*words, "--severity", "high", "--json").json
    assert tocsin(*words, "--severity", "high").out == f"sent event order-shipped, ID {first['id']}\n"
    eventually_sync(lambda: len(tocsin("events", "--json").json) == 1, "the event is in the log", within=30)
    (event,) = tocsin("events", "--json").json
    assert (event["id"], event["origin"], event["owner"]) == (first["id"], "external", "plant 7")
    assert event["payload"] == {"n": 1}


def doctor_on_dead_letters(tocsin: CommandLine) -> tuple[str, str]:
    found = tocsin.answer("doctor", "--json").json
    (check,) = (check for check in found if check["subject"] == "dead letters")
    return check["state"], check["text"]


def dead_letters_are_listed_newest_first(tocsin: CommandLine, settings: Settings) -> None:
    assert tocsin("dead-letters").out == "no dead letters\n"
    assert doctor_on_dead_letters(tocsin) == ("ok", "none")

    async def send_rubbish() -> None:
        async with jetstream(settings) as js:
            await js.publish(f"{settings.subjects}.datapoint.plant.a", b'{"value": null}')
            await js.publish(f"{settings.subjects}.ingest.event", b"rubbish")

    asyncio.run(send_rubbish())
    eventually_sync(lambda: len(tocsin("dead-letters", "--json").json) == 2, "two letters", within=30)
    letters = tocsin("dead-letters", "--json").json
    assert [letter["seq"] for letter in letters] == [2, 1]
    assert {letter["kind"] for letter in letters} == {"datapoint", "event"}
    (letter,) = tocsin("dead-letters", "--kind", "datapoint", "--json").json
    assert letter["reason"] == "the value is null: send a finite number, a text or a boolean"
    assert json.loads(letter["body"]) == {"value": None}
    state, text = doctor_on_dead_letters(tocsin)
    assert state == "red"
    assert text.startswith("1 of kind datapoint, 1 of kind event; the newest arrived at ")
    header, *lines = tocsin("dead-letters", "--limit", "1").lines
    assert header.split()[:3] == ["SEQ", "ARRIVED", "KIND"]
    assert len(lines) == 1
    assert "unknown kind 'x': use one of" in tocsin("dead-letters", "--kind", "x", exit_code=1).err
    assert "nothing selects the dead letters" in tocsin("dead-letters", "retry", exit_code=1).err
    put_back = tocsin("dead-letters", "retry", "--reason", "value is null", "--yes").out
    assert put_back == "put 1 dead letter back\n"
    (entry,) = (entry for entry in tocsin("audit", "--json").json if entry["kind"] == "dead-letter")
    assert (entry["verb"], entry["old"]["reason"]) == ("retry", letter["reason"])

    def is_rejected_again() -> bool:
        seqs = [letter["seq"] for letter in tocsin("dead-letters", "--json").json]
        return len(seqs) == 2 and 3 in seqs

    eventually_sync(is_rejected_again, "the message is a new dead letter", within=30)
    assert tocsin("dead-letters", "retry", "99", "--yes").out == "no dead letters were put back\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("send", "plant", "a b", "1"), "'a b' is not a key"),
        (("send", "plant", "a", "1", "--ts", "yesterday"), "--ts 'yesterday' is not an instant"),
        (("send", "plant", "a", "1", "--label", "x"), "--label 'x' has no name: write NAME=TEXT"),
        (("emit", "a b"), "type is 'a b': use letters, digits, '_' and '-', at most 128 of them"),
        (("emit", "a", "--payload", "["), "--payload '[' is not JSON"),
        (("emit", "a", "--payload", "[]"), "--payload '[]' is not a JSON object"),
        (("emit", "a", "--severity", "hot"), "unknown severity 'hot'"),
        (("emit", "a", "--correlation-id", "x"), "--correlation-id 'x' is not a UUID"),
    ],
)
def test_a_message_that_cannot_be_sent_is_one_line(
    tocsin: CommandLine, words: tuple[str, ...], error: str
) -> None:
    answer = tocsin(*words, exit_code=1)
    assert error in answer.err
    assert answer.err.startswith("tocsin: ")


def test_without_a_worker_the_error_names_the_service_to_start(
    tocsin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.cli.send._TIMEOUT_S", 0.0)
    monkeypatch.setattr("tocsin.cli.emit._TIMEOUT_S", 0.0)
    for words in (("send", "plant", "a", "1"), ("emit", "a")):
        assert "start `tocsin run worker`" in tocsin(*words, exit_code=2).err
