"""The messages whose forms the golden files keep.

`python -m tests.rules.delivery.golden_files` writes the files again; read the difference.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from rules.actions.steps.digest_message import default_digest
from rules.actions.steps.digest_results import digest_results
from rules.delivery.alarm_facts import KINDS, AlarmFacts, MessageKind, MessageView
from rules.delivery.alarm_message import alarm_message
from rules.delivery.group_message import group_message
from rules.delivery.message import Message
from schemas.documents.runbook.digest import DigestStep
from tests.rules.actions.digest_material import MATERIAL

GOLDEN = Path(__file__).parent / "golden"
SINCE = datetime(2026, 11, 17, 12, 0, 0, 250_000, tzinfo=UTC)
AT = {
    "opened": SINCE + timedelta(minutes=10),
    "resolved": SINCE + timedelta(hours=1, minutes=2, seconds=3),
}
LATER = SINCE + timedelta(minutes=30)
ALARM = "0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21"
FACTS: dict[str, Any] = {
    "rule": "dsp-hot",
    "severity": "high",
    "owner": "plant-7",
    "key": "dsp.temperature",
    "value": 71.25,
    "first_value": 66.0,
    "unit": "°C",
    "threshold": "above 65",
    "since": SINCE,
    "message": "dsp.temperature of plant-7 is above 65 for 10m (71.25 °C)",
    "alarm_id": UUID(ALARM),
}
FULL: dict[str, Any] = {
    **FACTS,
    "title": "DSP overheats",
    "description": "The DSP throttles at 80 °C and stops at 90 °C.",
    "runbook_url": "https://wiki.example.com/runbooks/dsp-hot",
    "labels": {"site": "ams", "rack": "4"},
}
OF_KIND: dict[str, dict[str, Any]] = {
    "changed": {"severity": "critical", "value": 92.0, "reason": "severity high -> critical"},
    "resolved": {
        "state": "resolved",
        "value": 60.0,
        "message": "dsp.temperature of plant-7 is clear (60 °C)",
        "resolved_at": AT["resolved"],
    },
    "acknowledged": {"acknowledged_by": "ada", "note": "fan replaced, watching it"},
    "snoozed": {"snoozed_by": "ada", "snoozed_until": SINCE + timedelta(hours=2)},
    "unsnoozed": {"snoozed_by": "ada"},
    "snooze-ended": {"snoozed_by": "ada"},
    "silence-ended": {"reason": "maintenance 'patch-night' ended"},
}
VIEW = MessageView(tz="Europe/Amsterdam", console_url="https://tocsin.example.com")


def member(number: int, **facts: Any) -> AlarmFacts:
    return AlarmFacts(
        **{
            "rule": "disk-full",
            "severity": "warning",
            "owner": f"db-{number}",
            "key": "disk.root.used",
            "value": 90.0 + number,
            "unit": "%",
            "threshold": "above 90",
            "since": SINCE + timedelta(minutes=number),
            "alarm_id": f"0b7c6ce5-0f0b-5d0e-8b0a-{number:012}",
            "message": f"disk.root.used of db-{number} is above 90",
            **facts,
        }
    )


MEMBERS = [
    member(1, state="resolved", resolved_at=SINCE + timedelta(minutes=20)),
    member(2),
    member(3, acknowledged_by="ada"),
    member(
        4, rule="cpu-hot", title="CPU overheats", severity="critical", key="cpu.temp", value=97.5, unit="°C"
    ),
]
RESOLVED = [
    member(number, state="resolved", resolved_at=SINCE + timedelta(minutes=20)) for number in range(1, 4)
]


_GROUP_KINDS: tuple[MessageKind, ...] = ("opened", "changed", "resolved", "reminder", "silence-ended")


def messages() -> Iterator[tuple[str, Message]]:
    """Every message by the name of its golden files."""
    for kind in KINDS:
        facts = AlarmFacts(**{**FULL, **OF_KIND.get(kind, {})})
        yield kind, alarm_message(facts, kind, AT.get(kind, LATER), VIEW)
    for kind in _GROUP_KINDS:
        members = RESOLVED if kind == "resolved" else MEMBERS
        site = {"payload.labels.site": "ams"}
        yield f"group-{kind}", group_message(members, kind, LATER, VIEW, group=site)
    results = digest_results(DigestStep.model_validate({}), MATERIAL)
    yield "digest", default_digest(results, VIEW)


def forms() -> dict[str, str]:
    """The content of each golden file by its name."""
    contents: dict[str, str] = {}
    for name, message in messages():
        contents[f"{name}.txt"] = f"Subject: {message.subject_line}\n\n{message.text}"
        contents[f"{name}.html"] = str(message.html)
        contents[f"{name}.slack.json"] = _json(message.blocks)
        contents[f"{name}.webhook.json"] = _json(message.payload)
    return contents


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, content in forms().items():
        (GOLDEN / name).write_text(content, encoding="utf-8")
