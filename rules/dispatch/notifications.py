"""Which channels are told about the edges of an alarm: the `notify` of its rule, or of its datapoint_type.

Guarantee: pure. Each channel is an action of its own, so that one that fails is tried again without the others. Told
are an opening, the end of a snooze while the alarm is still open, and, where the channel wants it, the resolution. A
channel that is not enabled is told nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rules.documents.rule_book import RuleSet
from schemas.documents import ChannelDocument, DatapointTypeDocument, EventRuleDocument

_TOLD = ("alarm-opened", "alarm-resolved", "alarm-snooze-ended")


class Notice(NamedTuple):
    rule: str
    """No action_rule can have this name: it is not a safe token."""
    action: str
    document: dict[str, Any]


class Notifier:
    def __init__(self, rules: RuleSet) -> None:
        self._channels = {
            name: channel for name, channel in rules.of(ChannelDocument).items() if channel.enabled
        }
        self._notify = {name: rule.notify for name, rule in rules.of(EventRuleDocument).items()}
        for name, one in rules.of(DatapointTypeDocument).items():
            self._notify[f"stale:{name}"] = one.notify

    def notices(self, facts: Mapping[str, Any]) -> Iterator[Notice]:
        if facts["type"] not in _TOLD or facts["origin"] != "derived":
            return
        for name in self._notify.get(facts["rule"], ()):
            channel = self._channels.get(name)
            if channel is None or (facts["type"] == "alarm-resolved" and not channel.send_resolved):
                continue
            action = f"notify-{name}"[:128]
            document = {"name": action, "channel": {"name": name}}
            yield Notice(f"notify:{facts['rule']}:{name}", action, document)
