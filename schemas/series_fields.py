"""What a rule may know about a series: the names that conditions over datapoints use.

Guarantee: `where` uses the names of `WHERE_FIELDS` alone: what a series is, not how it is.
"""

WHERE_FIELDS = ("owner", "key", "labels")
SERIES_FIELDS = (
    *("value", "previous", "rate", "age", "freshness", "ts", "arrived_at", "unit"),
    *WHERE_FIELDS,
)
