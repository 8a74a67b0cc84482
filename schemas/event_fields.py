"""What a rule may know about an event: the names and types of its fields.

Guarantee: conditions (`when`) and templates (`{{ ... }}`) use exactly these names. An absent text is
"", an absent severity is 0, so that every field always has a value of its type.

Why severity is a number: names of levels compare by letter ("disaster" >= "high" is false). The levels
start at 1, so that an event without a severity is below every level and equal to none.
"""

from collections.abc import Mapping
from types import MappingProxyType

STRING_FIELDS = ("origin", "type", "schedule", "rule", "action", "owner", "id", "correlation_id")
INT_FIELDS = ("severity", "seq")
INSTANT_FIELDS = ("ts", "recorded_at")
PAYLOAD_FIELD = "payload"
EVENT_FIELDS = (*STRING_FIELDS, *INT_FIELDS, *INSTANT_FIELDS, PAYLOAD_FIELD)

SEVERITIES: Mapping[str, int] = MappingProxyType(
    {"info": 1, "warning": 2, "average": 3, "high": 4, "critical": 5, "disaster": 6}
)
