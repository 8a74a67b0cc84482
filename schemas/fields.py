"""Names and types of the fields that conditions and templates may use.

Conditions (`when`, `alarm.state`) and templates (`{{ alarm.message }}`) use exactly these names. A
field without a value is empty, never missing: an absent text is "", an absent severity is 0, and a
run without an alarm sees an alarm whose state is "".
"""

from datetime import timedelta

STRING_FIELDS = ("origin", "type", "schedule", "rule", "action", "owner", "id", "correlation_id")
INT_FIELDS = ("severity", "seq")
BOOL_FIELDS = ("manual",)
INSTANT_FIELDS = ("ts", "recorded_at")
PAYLOAD_FIELD = "payload"
EVENT_FIELDS = (*STRING_FIELDS, *INT_FIELDS, *BOOL_FIELDS, *INSTANT_FIELDS, PAYLOAD_FIELD)

MAX_SNOOZE = timedelta(days=366)
MAX_SILENCE = timedelta(days=366)
MAX_REASON_LENGTH = 1_000

# Names in matchers of alarms (`where` of silences and maintenance, `source` and `target` of inhibits).
MATCHER_STRINGS = ("rule", "owner", "key", "instance", "title", "type")
MATCHER_FIELDS = (*MATCHER_STRINGS, "labels", "severity")
ALARM_STRINGS = ("id", "rule", "owner", "state", "message", "acknowledged_by")
ALARM_INTS = ("severity",)
ALARM_BOOLS = ("acknowledged", "snoozed")
ALARM_INSTANTS = ("since",)
ALARM_MAPS = ("payload",)
ALARM_FIELDS = (*ALARM_STRINGS, *ALARM_INTS, *ALARM_BOOLS, *ALARM_INSTANTS, *ALARM_MAPS)

# Names in the texts of steps, in addition to the fields of the event.
STEP_NAMES = ("alarm", "alarms", "answers", "events", "now")

WHERE_FIELDS = ("owner", "key", "labels")
SERIES_FIELDS = (
    *("value", "previous", "rate", "age", "freshness", "ts", "arrived_at", "unit"),
    *WHERE_FIELDS,
)
MESSAGE_FIELDS = (
    *("rule", "severity", "owner", "instance", "key", "value", "first_value", "unit", "threshold", "since"),
    *("labels", "series", "event_type", "payload"),
)
