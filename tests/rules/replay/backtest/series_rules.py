"""Documents about the series `dsp.*`."""

from __future__ import annotations

TYPE = "---\ndatapoint_type:\n  name: load\n  key: dsp.*\n  interval: {}\n"
HOT = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.*\n  fire: value > 65.0\n  clear: value < 60.0\n"
QUIET = "---\nevent_rule:\n  name: quiet\n  datapoint: dsp.*\n  absent: true\n"
