"""Rules about snoozes, and the notifications that the end of a snooze sends."""

from __future__ import annotations

from rules.documents.load import LoadedDocuments, load_text
from rules.replay.backtest.result import BacktestResult
from tests.rules.replay.backtest.simulated_recording import (
    START,
    sent,
)

HOT = """
event_rule: {name: hot, datapoint: dsp.*, fire: value > 65.0, %s}
---
event_rule: {name: loud, event: alarm-snooze-ended, fire: 'true'}
---
channel: {name: ops, webhook: {url: "https://hooks.example.com/1"}}
---
action: {name: tell, channel: {name: ops, text: x}}
---
action_rule: {name: woken, on: alarm, transitions: [snooze-ended], when: 'severity >= %s', action: tell}
---
action_rule: {name: hushed, on: alarm, transitions: [snoozed], when: 'severity >= %s', action: tell}
"""


def hot(text: str = "clear: value < 60.0", least: str = "info") -> LoadedDocuments:
    return load_text(HOT % (text, least, least), anchor=START)


def woken(result: BacktestResult) -> tuple[int, int]:
    """The notifications of the end of the snooze, and the alarms of a rule over that event."""
    opened = [one for one in result.replayed_transitions if (one.rule, one.kind) == ("loud", "opened")]
    return sent(result, "woken"), len(opened)


BRANCH = """---
action: {name: ask, steps: [wait: {for: 6s}, branch: {when: alarm.snoozed, else: [channel: {name: ops, text: x}]}]}
---
action_rule: {name: asking, on: alarm, action: ask}
"""
