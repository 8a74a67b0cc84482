import json
from html.parser import HTMLParser
from typing import Any, get_args

import pytest

from rules.delivery.alarm_facts import (
    KINDS,
    AlarmFacts,
    MessageKind,
    MessageView,
    kind_of_event,
    payload_type,
)
from rules.delivery.alarm_message import alarm_message
from rules.delivery.webhook import json_body
from schemas.wire.alarm_events import Transition, event_type
from tests.rules.delivery.golden_files import AT, FACTS, LATER, SINCE


def test_every_transition_and_every_reminder_has_a_message() -> None:
    kinds = {kind for part in get_args(MessageKind) for kind in (get_args(part) or (part,))}
    assert set(KINDS) == kinds


@pytest.mark.parametrize("transition", get_args(Transition))
def test_the_type_in_the_payload_is_the_type_of_the_event(transition: Transition) -> None:
    assert payload_type(transition) == event_type(transition)
    assert kind_of_event(event_type(transition)) == transition


def test_every_occasion_has_a_subject_of_its_own() -> None:
    facts = AlarmFacts(**FACTS)
    subjects = {kind: alarm_message(facts, kind, LATER).subject for kind in KINDS}
    assert subjects["opened"] == "[HIGH] dsp-hot (plant-7)"
    assert subjects["acknowledged"] == "[HIGH acknowledged] dsp-hot (plant-7)"
    assert subjects["reminder"] == "[HIGH still open] dsp-hot (plant-7)"
    # Both ends of a snooze mean the same to a reader.
    assert len(set(subjects.values())) == len(KINDS) - 1


@pytest.mark.parametrize("kind", ["opened", "resolved", "acknowledged", "reminder"])
def test_only_the_rule_has_to_be_known(kind: MessageKind) -> None:
    message = alarm_message(AlarmFacts(rule="dsp-hot"), kind, SINCE)
    assert message.subject.endswith("] dsp-hot")
    assert message.blocks is not None
    assert "None" not in f"{message.text}{message.html}{message.blocks}"
    assert message.payload is not None
    json_body(message.payload)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


_PAGE = {"html", "head", "meta", "title", "style", "body", "table", "tr", "td", "span", "h1", "p", "a"}


def test_no_fact_becomes_markup() -> None:
    evil = "<script>alert(1)</script>\"'& <!channel> <http://x|y>"
    names = (
        "rule",
        "title",
        "owner",
        "key",
        "value",
        "threshold",
        "message",
        "note",
        "reason",
        "description",
    )
    message = alarm_message(AlarmFacts(**{**FACTS, **dict.fromkeys(names, evil)}), "opened", SINCE)
    page = _Tags()
    page.feed(str(message.html))
    assert page.tags <= _PAGE
    assert evil in page.text
    assert message.blocks is not None
    for block in message.blocks[1:]:
        texts = [one["text"] for one in block.get("fields", [block.get("text")])]
        assert not [text for text in texts if "<" in text or ">" in text]


@pytest.mark.parametrize(
    ("value", "shown", "sent"),
    [
        (71.0, "71", "71"),
        (0.1 + 0.2, "0.3", "0.30000000000000004"),
        (3, "3", "3"),
        (True, "true", "true"),
        ("on", "on", '"on"'),
        (1e300, "1e+300", "1e+300"),
        (-0.00004, "-4e-05", "-4e-05"),
    ],
)
def test_a_value_is_shown_without_noise(value: Any, shown: str, sent: str) -> None:
    facts = {**FACTS, "value": value, "first_value": value, "unit": None}
    message = alarm_message(AlarmFacts(**facts), "opened", SINCE)
    assert f"Value      {shown}\n" in message.text
    assert message.payload is not None
    assert json.dumps(message.payload["value"]) == sent


def test_a_custom_level_has_its_name_in_the_subject() -> None:
    assert (
        alarm_message(AlarmFacts(**{**FACTS, "severity": "code-red"}), "opened", SINCE).subject
        == "[CODE-RED] dsp-hot (plant-7)"
    )


def test_since_may_be_the_text_from_an_event() -> None:
    as_text = {**FACTS, "since": "2026-11-17T12:00:00.250000Z"}
    assert alarm_message(AlarmFacts(**as_text), "resolved", AT["resolved"]) == alarm_message(
        AlarmFacts(**FACTS), "resolved", AT["resolved"]
    )


def test_instants_are_in_the_zone_of_the_channel_and_have_no_microseconds() -> None:
    message = alarm_message(AlarmFacts(**FACTS), "opened", LATER, MessageView(tz="America/New_York"))
    assert "2026-11-17 07:00:00 EST" in message.text
    assert ".25" not in message.text.replace("71.25", "")


def test_a_long_message_is_cut() -> None:
    message = alarm_message(AlarmFacts(**{**FACTS, "message": "x" * 100_000}), "opened", SINCE)
    assert len(message.text) < 3_000
    assert len(json_body(message.payload or {})) < 4_000
