"""References to what started a run or opened an alarm, and their text form.

| text | reference |
|---|---|
| `digest` | an action_rule that started a run, or an event_rule that opened an alarm |
| `schedule:nightly` | a schedule that started its own action |
| `notify:hot:ops` | the `notify` of a rule that started a delivery; the name is the rule and the channel |
| `stale:load` | a datapoint_type with `on_stale: alarm` |
| `heartbeat:backup` | a heartbeat |

Guarantee: parsing the text of a reference gives the same reference. Names of documents have no
colon, so no document can have the text of another kind as its name. Columns, events and SQL use the
text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

RuleKind = Literal["rule", "schedule", "notify", "stale", "heartbeat"]
_PREFIXES = ("schedule", "notify", "stale", "heartbeat")
ALARM_RULE_PATTERN = r"^((stale|heartbeat):)?[A-Za-z0-9_-]{1,128}$"
"""The text of a reference from an alarm: to an event_rule, a datapoint_type or a heartbeat."""


@dataclass(frozen=True, slots=True)
class RuleRef:
    kind: RuleKind
    name: str

    @classmethod
    def parse(cls, text: str) -> RuleRef:
        kind, separator, name = text.partition(":")
        if separator and kind in _PREFIXES:
            return cls(cast(RuleKind, kind), name)
        return cls("rule", text)

    @classmethod
    def of_notification(cls, rule: str, channel: str) -> RuleRef:
        """`rule` is the text of the reference to the rule of the alarm."""
        return cls("notify", f"{rule}:{channel}")

    def __str__(self) -> str:
        return self.name if self.kind == "rule" else f"{self.kind}:{self.name}"
