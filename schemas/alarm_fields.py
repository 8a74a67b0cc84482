"""What a step may know about the alarm that its action is about: names and types.

Guarantee: conditions (`alarm.state`) and templates (`{{ alarm.message }}`) use exactly these names. An action that is
about no alarm sees the same names, empty: the state is "", nothing is acknowledged.
"""

from datetime import timedelta

LONGEST_SNOOZE = timedelta(days=366)
ALARM_STRINGS = ("id", "rule", "owner", "state", "message", "acknowledged_by")
ALARM_INTS = ("severity",)
ALARM_BOOLS = ("acknowledged", "snoozed")
ALARM_INSTANTS = ("since",)
ALARM_MAPS = ("payload",)
ALARM_FIELDS = (*ALARM_STRINGS, *ALARM_INTS, *ALARM_BOOLS, *ALARM_INSTANTS, *ALARM_MAPS)

# What a step's texts may name beside the fields of the event.
STEP_NAMES = ("alarm", "answers", "events", "now")
