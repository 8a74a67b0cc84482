"""What a rule may know about a series: the names that its conditions and its message use.

Guarantee: `where` uses the names of `WHERE_FIELDS` alone: what a series is, not how it is. The message of an alarm is
filled with `MESSAGE_FIELDS`; of an alarm over events, `key` and `unit` are "" and `value` is null.
"""

WHERE_FIELDS = ("owner", "key", "labels")
SERIES_FIELDS = (
    *("value", "previous", "rate", "age", "freshness", "ts", "arrived_at", "unit"),
    *WHERE_FIELDS,
)
MESSAGE_FIELDS = ("rule", "severity", "owner", "key", "value", "unit", "threshold", "since", "labels")
