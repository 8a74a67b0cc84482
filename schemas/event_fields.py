"""What a rule may know about an event: the names and types of its fields.

Guarantee: conditions (`when`) and templates (`{{ ... }}`) use exactly these names. An absent text is
"", an absent severity is 0, so that every field always has a value of its type.
"""

STRING_FIELDS = ("origin", "type", "schedule", "rule", "action", "owner", "id", "correlation_id")
INT_FIELDS = ("severity", "seq")
INSTANT_FIELDS = ("ts", "recorded_at")
PAYLOAD_FIELD = "payload"
EVENT_FIELDS = (*STRING_FIELDS, *INT_FIELDS, *INSTANT_FIELDS, PAYLOAD_FIELD)
