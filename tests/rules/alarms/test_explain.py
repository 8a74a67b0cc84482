"""The explanation of an alarm, line by line: a golden text for each state."""

from __future__ import annotations

from typing import Any

from rules.alarms.explain import explain
from tests.clock.alarms import ALARM, CAUSE
from tests.clock.clock_setup import at

PAYLOAD = {"value": 71.2, "threshold": "above 65", "message": "dsp-hot: it is 71.2, above 65 for 10m"}


def alarm(state: str) -> dict[str, Any]:
    return {
        "id": ALARM,
        "event_rule": "dsp-hot",
        "owner": "plant-7",
        "instance": "dsp.temperature",
        "state": state,
        "since": at(0),
        "payload": PAYLOAD,
        "correlation_id": CAUSE,
    }


def event(seq: int, type: str, seconds: float, epoch: int | None = None, **payload: Any) -> dict[str, Any]:
    return {"seq": seq, "type": type, "ts": at(seconds), "epoch": epoch, "payload": payload}


def sustain(key: str, watermark: Any = None, parked: bool = False) -> dict[str, Any]:
    return {
        "key": key,
        "nominal_at": at(600),
        "parked_at": at(700) if parked else None,
        "last_error": "ValueError: bad" if parked else None,
        "lane": "data",
        "partition": 3,
        "watermark": watermark,
    }


def test_a_pending_alarm_shows_when_it_will_open() -> None:
    explanation = explain(alarm("pending"), [], [], [sustain("open")], at(60))
    assert explanation.sentence == "dsp-hot of 'plant-7' is pending: dsp-hot: it is 71.2, above 65 for 10m"
    assert explanation.history == (
        "2026-03-02T08:00:00Z  the condition began at the value 71.2",
        "2026-03-02T08:10:00Z  opens, unless the condition changes before",
    )
    assert explanation.facts["threshold"] == "above 65"


def test_a_held_sustain_shows_its_partition() -> None:
    for read, why in (
        (None, "nothing was read of it yet"),
        (at(500), "it was read until 2026-03-02T08:08:20Z"),
    ):
        explanation = explain(alarm("pending"), [], [], [sustain("open", read)], at(601))
        assert explanation.history[-1] == (
            "2026-03-02T08:10:00Z  opens, unless the condition changes before; "
            f"held, because partition 3 of the data lane is behind ({why})"
        )


def test_a_parked_sustain_shows_its_error() -> None:
    explanation = explain(alarm("pending"), [], [], [sustain("open", parked=True)], at(700))
    assert explanation.history[-1].endswith("; the timer is parked: ValueError: bad")


def test_the_history_is_in_the_order_of_time_and_cites_seq_epoch_person_and_note() -> None:
    action = {
        "name": "page",
        "action_rule": "escalate",
        "state": "failed",
        "started_at": at(601),
        "error": "410 gone",
    }
    explanation = explain(
        alarm("resolved"),
        [
            event(4, "alarm-opened", 600, epoch=2),
            event(6, "alarm-acknowledged", 660, who="bob", note="on it"),
            event(7, "alarm-snoozed", 661, who="bob", until="2026-03-02T10:00:00+01:00"),
            event(9, "alarm-resolved", 900, reason="clear"),
        ],
        [action],
        [],
        at(1000),
    )
    assert explanation.history[1:] == (
        "2026-03-02T08:10:00Z  opened (seq 4, by the clock in epoch 2)",
        "2026-03-02T08:10:01Z  started page by escalate, failed: 410 gone",
        "2026-03-02T08:11:00Z  acknowledged by bob: on it (seq 6)",
        "2026-03-02T08:11:01Z  snoozed by bob until 2026-03-02T09:00:00Z (seq 7)",
        "2026-03-02T08:15:00Z  resolved, clear (seq 9)",
    )
