"""Documents about series that are watched for staleness."""

from __future__ import annotations

QUIET = "---\nevent_rule:\n  name: quiet\n  datapoint: dsp.*\n  absent: true\n"
OTHER = "---\nevent_rule:\n  name: other\n  datapoint: other\n  above: 1\n"


def watched(interval: str = "4s", extra: str = "", key: str = "dsp.*", name: str = "load") -> str:
    """Stale after two and a half intervals."""
    return f"---\ndatapoint_type:\n  name: {name}\n  key: {key}\n  interval: {interval}\n{extra}"
