"""Random rule sets that use everything that depends on time. Any of them can follow any other.

Guarantee: a seed gives the same rule sets in the same order.
"""

from __future__ import annotations

import random

OWNERS = [f"plant-{number}" for number in range(36)]
DATAPOINT_KEYS = ("dsp.a", "dsp.b", "dsp.c", "meter.x", "meter.y", "door")

_ALWAYS = """
schedule: {name: rise, every: 7s, type: trip, owner: plant-1, payload: {on: true}}
---
schedule: {name: fall, every: 11s, type: trip, owner: plant-1, payload: {on: false}}
---
schedule: {name: pulse, every: 2s, owner: plant-2}
---
system:
  name: cooling
  members:
    - {owner: plant-3, key: dsp.a}
    - {owner: plant-4, key: meter.x}
    - {owner: plant-5, key: door, required: false}
---
action:
  name: reset
  steps:
    - wait: {for: 1500ms}
    - emit: {type: trip, payload: {on: false}}
---
action_rule: {name: answer, on: alarm, when: 'rule == "tripped"', action: reset, overlap: queue}
"""
_TYPES = (
    (
        "datapoint_type: {{name: load, key: dsp.*, interval: {}, tolerance: {}{}}}",
        ("1s", "1500ms", "2s"),
        ("2.5", "4"),
        ("", ", on_stale: hold", ", on_stale: alarm", ", on_stale: alarm, for: 2s, severity: high"),
    ),
    (
        "datapoint_type: {{name: meter, key: meter.*, interval: {}, on_stale: {}}}",
        ("2s", "3s"),
        ("unknown", "alarm"),
    ),
)
_OTHERS = (
    ("datapoint_type: {{name: door, key: door, value: string, heartbeat: {}}}", ("4s", "6s")),
    (
        "event_rule: {{name: hot, datapoint: dsp.*, fire: value > {}, clear: value < 60.0,"
        ' message: "{{{{ key }}}} of {{{{ owner }}}} is at {{{{ value }}}}"{}{}}}',
        ("65.0", "67.5"),
        ("", ", for: 1s", ", for: 4s"),
        ("", ", keep_firing_for: 2s"),
    ),
    ("event_rule: {{name: steep, datapoint: dsp.a, rate_increase: {}{}}}", ("3", "8"), ("", ", for: 1s")),
    (
        "event_rule: {{name: swing, datapoint: dsp.b, fire: value - previous > {}{}}}",
        ("4.0", "9.0"),
        ("", ", keep_firing_for: 3s"),
    ),
    (
        "event_rule: {{name: mean, datapoint: dsp.*, above: {}, window: {{over: {}, reduce: {}}}}}",
        ("58", "63"),
        ("10s", "20s"),
        ("avg", "max", "min"),
    ),
    (
        "event_rule: {{name: busy, datapoint: meter.*, above: {}, window: {{over: 15s, reduce: count}}{}}}",
        ("8", "12"),
        ("", ", for: 2s"),
    ),
    ("event_rule: {{name: quiet, datapoint: dsp.*, absent: true{}}}", ("", ", for: 1s", ", for: 3s")),
    (
        "event_rule: {{name: strict, datapoint: meter.*, below: {}, no_data: alarm{}{}}}",
        ("20", "30"),
        ("", ", no_data_for: 1s", ", no_data_for: 3s"),
        ("", ", for: 2s"),
    ),
    (
        "event_rule: {{name: lenient, datapoint: meter.*, above: {}, no_data: resolve{}}}",
        ("55", "70"),
        ("", ", no_data_for: 1s", ", no_data_for: 4s"),
    ),
    (
        "event_rule: {{name: rare, datapoint: dsp.b, above: {}, cooldown: {}, severity: critical}}",
        ("60", "66"),
        ("8s", "15s"),
    ),
    (
        'event_rule: {{name: aged, datapoint: dsp.c, fire: \'freshness == "stale" && age > duration("{}")\'}}',
        ("1s", "4s"),
    ),
    ('event_rule: {{name: open-door, datapoint: door, fire: value == "open", for: {}}}', ("2s", "5s")),
    (
        'event_rule: {{name: north, datapoint: meter.*, where: labels.zone == "north", fire: value > {}{}}}',
        ("45.0", "60.0"),
        ("", ", for: 3s"),
    ),
    (
        "event_rule: {{name: tripped, event: trip, fire: payload.on == true{}}}",
        ("", ", for: 1s", ", for: 3s"),
    ),
    (
        'event_rule: {{name: alarming, event: alarm-*, fire: type == "alarm-opened" && rule == "{}"{}}}',
        ("hot", "quiet"),
        ("", ", for: 2s"),
    ),
    (
        'event_rule: {{name: missing, event: schedule-*, fire: type == "schedule-missed"{}}}',
        ("", ", keep_firing_for: 3s"),
    ),
    (
        'event_rule: {{name: ill, datapoint: system.health, fire: \'value == "outage" || value == "unknown"\'{}}}',
        ("", ", for: 2s"),
    ),
)
# Others name them, so they may be disabled, but not missing.
_NAMED = ("hot", "quiet", "tripped")
RULES = {name.split("{{name: ")[1].split(",")[0] for name, *_ in _OTHERS if name.startswith("event_rule")}


def busy_rules(chance: random.Random) -> str:
    """A rule set. One in eight documents is missing, and one in ten rules is disabled."""
    documents = [_ALWAYS, *(_chosen(chance, *template) for template in _TYPES)]
    for template in _OTHERS:
        document = _chosen(chance, *template)
        if chance.random() < 0.1 and document.startswith("event_rule"):
            document = document[:-1] + ", enabled: false}"
        if chance.random() > 0.125 or any(f"name: {name}," in document for name in _NAMED):
            documents.append(document)
    return "\n---\n".join(documents)


def _chosen(chance: random.Random, text: str, *choices: tuple[str, ...]) -> str:
    return text.format(*(chance.choice(options) for options in choices))
