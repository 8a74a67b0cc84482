"""The patterns that texts in documents and messages have to match, and what to write instead."""

from __future__ import annotations

NAME_PATTERN = r"^[A-Za-z0-9_-]{1,128}$"
EVENT_TYPE_PATTERN = r"^[A-Za-z0-9_*-]{1,128}$"
"""Or some of them: `*` stands for any letters."""
ALARM_RULE_PATTERN = r"^(stale:)?[A-Za-z0-9_-]{1,128}$"
"""What an alarm is of: an event_rule, or the silence of a datapoint_type."""
TIME_OF_DAY_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"

HINTS = {
    NAME_PATTERN: "use letters, digits, '_' and '-', at most 128 of them",
    EVENT_TYPE_PATTERN: "use letters, digits, '_', '-' and '*', at most 128 of them",
    ALARM_RULE_PATTERN: "name an event_rule, or the silence of a datapoint_type, such as stale:load",
    TIME_OF_DAY_PATTERN: "write a time of day, such as 08:00",
}
