"""`tocsin check`: what an apply or production would refuse is an error, what never happens a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

CHANNEL = 'channel: {name: ops, webhook: {url: "https://hooks.example.com/x"}}\n---\n'
SAY = "action: {name: say, log: {message: hi}}\n---\n"


def checked(alone: CommandLine, folder: Path, text: str, *options: str, exit_code: int = 0) -> str:
    (folder / "r.yaml").write_text(text)
    answer = alone("check", "r.yaml", *options, exit_code=exit_code)
    return answer.out + answer.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "event_rule: {name: m, datapoint: x, absent: true}\n",
            "r.yaml:1:45: 'absent' of event_rule 'm' waits for missing data, and no datapoint_type",
        ),
        (
            "action: {name: a, log: {message: \"{{ ts | local('America/New_York', '%F') }}\"}}\n",
            "'log.message' of action 'a': '%F' is not a format of times",
        ),
        (
            "action: {name: a, log: {message: \"{{ ts | local('Europe/Nowhere') }}\"}}\n",
            "unknown timezone 'Europe/Nowhere'",
        ),
        (
            'action: {name: a, log: {message: "{{ alarm.mesage }}"}}\n',
            "r.yaml:1:38: 'log.message' of action 'a': 'alarm' has no 'mesage', did you mean 'message'?",
        ),
        (
            "action:\n  name: a\n  steps:\n    - {name: one, log: {message: hi}}\n"
            '    - {log: {message: "{{ answers.onee.text }}"}}\n',
            "unknown answer 'onee', did you mean 'one'?",
        ),
        (
            f"{SAY}event_rule: {{name: dsp-hot, datapoint: x, above: 5}}\n---\n"
            "action_rule: {name: r, on: alarm, when: 'rule == \"dsp-hott\"', action: say}\n",
            "unknown rule 'dsp-hott', did you mean 'dsp-hot'?",
        ),
        (
            f"{SAY}action_rule: {{name: r, on: event, when: 'action == \"sayy\"', action: say}}\n",
            "unknown action 'sayy', did you mean 'say'?",
        ),
        (
            f"{SAY}action_rule: {{name: r, on: event, when: 'type == \"alarm-opend\"', action: say}}\n",
            "unknown event type 'alarm-opend', did you mean 'alarm-opened'?",
        ),
        (
            "event_rule: {name: r, event: link-down, fire: 'true', clear: 'type == \"link-up\"'}\n",
            "'clear' of event_rule 'r': the pattern 'link-down' never brings the type 'link-up'",
        ),
        (
            "datapoint_type: {name: t, key: x, value: string}\n---\n"
            "event_rule: {name: e, datapoint: x, window: {over: 5m, reduce: avg}, above: 5}\n",
            "'window.reduce: avg' of event_rule 'e' needs numbers, and its datapoint_type has 'value: string'",
        ),
        (
            "action: {name: a, steps: [{wait: {for: '{{ payload.grace }}'}}]}\n",
            "'{{ payload.grace }}' is not a duration: it is no template, write a number with a unit",
        ),
        (
            "calc_rule: {name: c, every: 5m, inputs: {t: {key: t, over: 10m, agregate: sum}}, value: 't'}\n",
            "r.yaml:1:65: unknown key 'agregate' in calc_rule 'c', did you mean 'aggregate'?",
        ),
        (
            "event_rule: {name: d, datapoint: x, fire: 'value - 5 > 60'}\n",
            "r.yaml:1:50: 'fire' of event_rule 'd': '-' cannot be applied to an untyped number, which is a double, "
            "and int, write 5.0",
        ),
        (
            "event_rule: {name: d, datapoint: x, fire: 'value % 2 == 0'}\n",
            "'%' needs whole numbers, and an untyped number is a double, write int(...) around it",
        ),
        (
            f"{SAY}action_rule: {{name: r, on: event, when: 'payload.count + 1 > 3', action: say}}\n",
            "'+' cannot be applied to an untyped number, which is a double, and int, write 1.0",
        ),
        (
            "event_rule: {name: r, event: x, clear: 'payload.a - size(payload.b) > 1'}\n",
            "'-' cannot be applied to an untyped number, which is a double, and int, write double(...) around the int",
        ),
    ],
)
def test_what_would_fail_later_is_an_error_with_its_position(
    alone: CommandLine, tmp_path: Path, text: str, says: str
) -> None:
    assert says in checked(alone, tmp_path, text, exit_code=1)


WARNED = [
    (
        f"{SAY}schedule: {{name: s, cron: '@daily', type: order-shipped}}\n---\n"
        "action_rule: {name: r, on: event, when: 'type == \"order-shiped\"', action: say}\n",
        "no document of these files makes events of the type 'order-shiped', did you mean 'order-shipped'?",
    ),
    (
        "schedule: {name: s, rrule: 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=8;BYMINUTE=0;BYSECOND=0', tz: America/New_York,\n"
        "  exdates: ['2099-11-23T09:00:00']}\n",
        "r.yaml:2:13: warning: 'exdates.0' of schedule 's' is no occurrence: it fires at 08:00 on that day",
    ),
    (
        "schedule: {name: s, rrule: 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=8', exdates: ['2099-11-24T08:00:00']}\n",
        "'exdates.0' of schedule 's' is no occurrence: nothing fires on that day",
    ),
    (
        "schedule: {name: s, rrule: 'FREQ=WEEKLY;BYHOUR=8'}\n",
        "'rrule' of schedule 's' depends on the day on which it is applied: add BYDAY, or 'dtstart'",
    ),
    (
        "schedule: {name: past, at: '2020-01-01T00:00:00Z'}\n",
        "r.yaml:1:28: warning: 'at' of schedule 'past' lies in the past, so it never fires: remove it",
    ),
    (
        "schedule: {name: s, rrule: 'FREQ=DAILY;BYHOUR=8;UNTIL=20200101T000000', dtstart: '2019-12-01T00:00:00'}\n",
        "'rrule' of schedule 's' has no occurrence after now, so it never fires",
    ),
    (
        "schedule: {name: s, cron: '@daily', payload: {x: '{{ now }}'}}\n",
        "'payload.x' of schedule 's' is no template: '{{' is sent as it is",
    ),
    (
        f"{CHANNEL}event_rule: {{name: hot, datapoint: t, above: 80, clear: 'value < 90.0', notify: [ops]}}\n",
        "'clear' of event_rule 'hot' holds together with 'above', such as at 85",
    ),
    (
        f"{CHANNEL}event_rule: {{name: hot, datapoint: t, notify: [ops], fire: 'value > 10.0',\n"
        "  clear: 'value > 5.0'}\n",
        "'clear' of event_rule 'hot' holds together with 'fire', such as at",
    ),
    (
        f"{CHANNEL}datapoint_type: {{name: cpu, key: cpu.temperature}}\n---\n"
        "event_rule: {name: hot, datapoint: cpu.temprature, above: 80, notify: [ops]}\n",
        "no datapoint_type covers 'cpu.temprature' of event_rule 'hot', did you mean 'cpu.temperature'?",
    ),
    (
        f"{CHANNEL}datapoint_type: {{name: x, key: x, interval: 1m}}\n---\n"
        "event_rule: {name: old, datapoint: x, fire: 'age > duration(\"10m\")', notify: [ops]}\n",
        "r.yaml:5:45: warning: 'fire' of event_rule 'old' is never true: the age of a series is zero when a datapoint"
        " arrives, and its deadline, 2m30s, when it becomes stale; use 'absent' with 'for'",
    ),
    (
        f"{CHANNEL}datapoint_type: {{name: x, key: x, interval: 1m}}\n---\n"
        "event_rule: {name: old, datapoint: x, fire: 'value > 5.0 && age > duration(\"10m\")', notify: [ops]}\n",
        "'fire' of event_rule 'old' is never true",
    ),
    (
        f"{CHANNEL}datapoint_type: {{name: x, key: x, interval: 1m}}\n---\n"
        "event_rule: {name: old, datapoint: x, above: 5, clear: 'age > duration(\"10m\")', notify: [ops]}\n",
        "'clear' of event_rule 'old' is never true",
    ),
    (
        "system: {name: s, members: [{owner: 'plant-*', key: x}]}\n",
        "r.yaml:1:37: warning: 'members.0.owner' of system 's' is an owner, not a pattern",
    ),
    (
        "datapoint_type: {name: x, key: x, interval: 1m, owners: ['a*']}\n",
        "'owners.0' of datapoint_type 'x' is an owner, not a pattern",
    ),
    (
        "action: {name: a, steps: [{wait: {until_event: 'type == \"done\"'}}]}\n",
        "'steps.0.wait' of action 'a' has no 'timeout': without the event it waits forever",
    ),
    (
        f"{SAY}event_rule: {{name: hot, datapoint: t, above: 80}}\n---\n"
        "action_rule: {name: r, on: event, when: 'origin == \"scheduled\"', action: say}\n",
        "the alarm of event_rule 'hot' reaches no channel and starts no action: add 'notify', or an action_rule",
    ),
    (
        "datapoint_type: {name: x, key: x, interval: 1m, on_stale: alarm}\n",
        "the alarm of datapoint_type 'x' reaches no channel",
    ),
]


@pytest.mark.parametrize(("text", "says"), WARNED)
def test_what_never_happens_is_a_warning(alone: CommandLine, tmp_path: Path, text: str, says: str) -> None:
    shown = checked(alone, tmp_path, text)
    assert says in shown
    assert "warning" in shown
    assert "r.yaml:" in shown
    assert says in checked(alone, tmp_path, text, "--strict", exit_code=1)


def test_warnings_are_part_of_the_json(alone: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("schedule: {name: past, at: '2020-01-01T00:00:00Z'}\n")
    answer = alone("check", "r.yaml", "--json").json
    assert answer["ok"] is True
    (warning,) = answer["warnings"]
    assert (warning["file"], warning["line"], warning["column"]) == ("r.yaml", 1, 28)
    strict = alone("check", "r.yaml", "--strict", "--json", exit_code=1)
    assert "lies in the past" in strict.err + strict.out


QUIET = [
    f"{CHANNEL}datapoint_type: {{name: x, key: x, interval: 1m}}\n---\n"
    "event_rule: {name: old, datapoint: x, fire: 'value > 5.0 || age > duration(\"10m\")', notify: [ops]}\n",
    f"{CHANNEL}datapoint_type: {{name: x, key: x, interval: 1m}}\n---\n"
    "event_rule: {name: old, datapoint: x, fire: 'value > 5.0 && age > duration(\"2m\")', notify: [ops]}\n",
    f"{CHANNEL}event_rule: {{name: hot, datapoint: t, above: 80, clear: 'value < 75.0', notify: [ops]}}\n",
    f"{CHANNEL}event_rule: {{name: hot, datapoint: t, above: 80, clear: 'value < 80.0', notify: [ops]}}\n",
    f"{SAY}event_rule: {{name: hot, datapoint: t, above: 80}}\n---\n"
    "action_rule: {name: r, on: alarm, when: 'severity >= high', action: say}\n",
    f"{SAY}event_rule: {{name: hot, datapoint: t, above: 80}}\n---\n"
    "action_rule: {name: r, on: event, when: 'type == \"alarm-opened\"', action: say}\n",
    f"{SAY}action_rule: {{name: r, on: event, when: 'type == \"order-shipped\"', action: say}}\n",
    "schedule: {name: s, rrule: 'FREQ=WEEKLY;BYDAY=MO;BYHOUR=8', exdates: ['2099-11-23T08:00:00']}\n",
    'action: {name: a, digest: {channel: ops, text: "{% for alarm in open_alarms %}{{ alarm.x }}{% endfor %}"}}\n'
    f"---\n{CHANNEL.removesuffix('---' + chr(10))}",
]


@pytest.mark.parametrize("text", QUIET)
def test_what_can_happen_is_no_warning(alone: CommandLine, tmp_path: Path, text: str) -> None:
    assert "warning" not in checked(alone, tmp_path, text, "--strict")
