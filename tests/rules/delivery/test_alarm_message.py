import json
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rules.delivery.alarm_message import AlarmFacts, alarm_message
from rules.delivery.message import Message
from rules.delivery.webhook import json_body
from schemas.wire.alarm_events import RuleTransition

GOLDEN = Path(__file__).parent / "golden"
SINCE = datetime(2026, 11, 17, 12, 0, 0, 250_000, tzinfo=UTC)
AT = {"opened": SINCE + timedelta(minutes=10), "resolved": SINCE + timedelta(hours=1, minutes=2, seconds=3)}
FACTS: dict[str, Any] = {
    "rule": "dsp-hot",
    "severity": "high",
    "owner": "plant-7",
    "key": "dsp.temperature",
    "value": 71.25,
    "threshold": "value > 65.0",
    "since": SINCE,
    "message": "dsp.temperature of plant-7 is 71.25, above 65.0 for 10m",
    "alarm_id": UUID("0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21"),
}


def forms(message: Message) -> dict[str, str]:
    return {
        "txt": f"Subject: {message.subject_line}\n\n{message.text}",
        "html": str(message.html),
        "slack.json": json.dumps(message.blocks, indent=2, ensure_ascii=False) + "\n",
        "webhook.json": json.dumps(message.payload, indent=2, ensure_ascii=False) + "\n",
    }


@pytest.mark.parametrize("transition", ["opened", "resolved"])
@pytest.mark.parametrize("form", ["txt", "html", "slack.json", "webhook.json"])
def test_the_default_message_has_not_changed(transition: RuleTransition, form: str) -> None:
    made = forms(alarm_message(AlarmFacts(**FACTS), transition, AT[transition]))[form]
    assert made == (GOLDEN / f"{transition}.{form}").read_text(encoding="utf-8")


@pytest.mark.parametrize("transition", ["opened", "resolved"])
def test_only_the_rule_has_to_be_known(transition: RuleTransition) -> None:
    message = alarm_message(AlarmFacts(rule="dsp-hot"), transition, SINCE)
    assert message.subject == ("[ALARM] dsp-hot" if transition == "opened" else "[RESOLVED] dsp-hot")
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


def test_no_fact_becomes_markup() -> None:
    evil = "<script>alert(1)</script>\"'& <!channel> <http://x|y>"
    facts = {**FACTS, **dict.fromkeys(("rule", "owner", "key", "value", "threshold", "message"), evil)}
    message = alarm_message(AlarmFacts(**facts), "opened", SINCE)
    page = _Tags()
    page.feed(str(message.html))
    assert page.tags == {"div", "h2", "p", "table", "tr", "td"}
    assert evil in page.text
    assert message.blocks is not None
    for block in message.blocks[1:]:
        texts = [one["text"] for one in block.get("fields", [block.get("text")])]
        assert not [text for text in texts if "<" in text or ">" in text]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (71.0, "71"),
        (0.1 + 0.2, "0.3"),
        (3, "3"),
        (True, "true"),
        ("on", "on"),
        (1e300, "1e+300"),
        (-0.00004, "-0"),
    ],
)
def test_a_value_is_shown_without_noise(value: Any, shown: str) -> None:
    message = alarm_message(AlarmFacts(**{**FACTS, "value": value}), "opened", SINCE)
    assert f"Value      {shown}\n" in message.text
    assert message.payload is not None
    assert message.payload["value"] == value


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
