"""Problems of the steps of an action are reported when the file is loaded, with their position."""

from __future__ import annotations

import pytest

from rules.documents.load import load_text
from tests.rules.documents.load.problems import problems_of

LOG = "log: {message: x}"


def steps(*lines: str) -> str:
    return "action:\n  name: a\n  steps:\n" + "".join(f"    {line}\n" for line in lines)


def test_a_runbook_with_every_kind_of_step_is_loaded_and_stored_as_written() -> None:
    text = steps(
        "- {name: one, log: {message: '{{ alarm.message }} {{ answers }} {{ now }}'}, on_failure: continue}",
        "- {wait: {for: 10m}}",
        "- {wait: {until: '08:00', tz: Europe/London}}",
        "- wait: {until_event: 'type == \"x\" && owner == trigger.owner', timeout: 1h, on_timeout: stop}",
        "- {name: two, dispatch: {subject: jobs.x, within: 1h}, timeout: 5s,",
        "   retry: {attempts: 2, initial_interval: 1s}}",
        "- branch:",
        "    when: 'alarm.state == \"open\" && answers.two.files > 3'",
        f"    then: [{{{LOG}}}]",
        "    else: [{emit: {type: y}}, {record: {key: k, value: 0}}]",
        f"- parallel: [[{{{LOG}}}], [{{wait: {{for: 1s}}}}, {{{LOG}}}]]",
    )
    (document,) = load_text(text).documents
    assert document.data["steps"][1] == {
        "on_failure": "stop",
        "wait": {
            "for": "10m",
            "until": None,
            "tz": "UTC",
            "days": None,
            "until_event": None,
            "timeout": None,
            "on_timeout": None,
        },
    }
    assert document.data["steps"][5]["branch"]["else"][1] == {
        "on_failure": "stop",
        "record": {"key": "k", "value": 0, "owner": "{{ owner }}"},
    }


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("- {lgo: {message: x}}",), "4:8: unknown key 'lgo' in action 'a', did you mean 'log'?"),
        (("- {log: {mesage: x}}",), "4:14: unknown key 'mesage' in action 'a', did you mean 'message'?"),
        (("- {name: x}",), "4:7: 'steps.0' of action 'a' needs one of log, "),
        (
            (f"- {{{LOG}, wait: {{for: 1s}}}}",),
            "4:27: 'steps.0' of action 'a' has both 'log' and 'wait': keep one of them",
        ),
        (
            ("- {wait: {for: 1s}, retry: {attempts: 2}}",),
            "4:25: 'steps.0' of action 'a' has 'retry', which has no effect on 'wait': remove it",
        ),
        (("- {wait: {}}",), "4:14: 'steps.0.wait' of action 'a' needs one of for, until or until_event"),
        (
            ("- {wait: {for: 1s, until: '08:00'}}",),
            "4:24: 'steps.0.wait' of action 'a' has both 'for' and 'until': keep one of for, until and until_event",
        ),
        (
            ("- {wait: {until_event: 'true', timeout: 1h}}",),
            "4:14: 'steps.0.wait' of action 'a' has one of 'timeout' and 'on_timeout': give both, or neither",
        ),
        (
            ("- {wait: {for: 1s, timeout: 1h, on_timeout: stop}}",),
            "4:24: 'steps.0.wait' of action 'a' has 'timeout', which belongs to 'until_event', and 'for': remove",
        ),
        (
            ("- {wait: {until: '08:00', tz: Europe/Lodnon}}",),
            "4:35: action 'a': unknown timezone 'Europe/Lodnon': did you mean 'Europe/London'?",
        ),
        (
            ("- wait: {until_event: 'ownr == trigger.owner'}",),
            "4:28: 'steps.0.wait.until_event' of action 'a': undeclared reference to 'ownr', did you mean 'owner'?",
        ),
        (
            ("- wait: {until_event: 'owner == trigger.ownr'}",),
            "4:44: 'steps.0.wait.until_event' of action 'a': 'trigger' has no 'ownr', did you mean 'owner'?",
        ),
        (
            ("- branch:", "    when: 'alarm.sate == \"open\"'", f"    then: [{{{LOG}}}]"),
            "5:21: 'steps.0.branch.when' of action 'a': 'alarm' has no 'sate', did you mean 'state'?",
        ),
        (
            (
                "- branch: {when: 'answers.later.x == 1', " + f"then: [{{{LOG}}}]}}",
                f"- {{name: later, {LOG}}}",
            ),
            "4:30: 'steps.0.branch.when' of action 'a': unknown answer 'later', no step before this one has this name",
        ),
        (
            ("- branch: {when: 'true'}",),
            "4:15: 'steps.0.branch' of action 'a' needs steps in 'then' or 'else'",
        ),
        (
            ("- parallel: [[]]",),
            "4:18: 'steps.0.parallel.0' of action 'a' is too short: it needs at least 1",
        ),
        (
            (f"- {{name: x, {LOG}}}", f"- {{name: x, {LOG}}}"),
            "5:14: two steps of action 'a' are named 'x'",
        ),
        (
            ("- branch: {when: 'true', else: [{log: {message: '{{ nwo }}'}}]}",),
            "4:57: 'steps.0.branch.else.0.log.message' of action 'a': unknown name 'nwo', did you mean 'now'?",
        ),
        (
            ("- {publish: {subject: tocsin.x}}",),
            "4:27: 'steps.0.publish.subject' of action 'a': the subject 'tocsin.x' is reserved: "
            "start it with another word",
        ),
        (
            ("- {log: {message: x}, on_failure: stopp}",),
            "4:39: 'steps.0.on_failure' of action 'a' must be 'stop' or 'continue', not 'stopp', did you mean 'stop'?",
        ),
        (
            ("- {log: {message: x}, retry: {attempts: 0}}",),
            "4:45: 'steps.0.retry.attempts' of action 'a' must be greater than or equal to 1, not 0",
        ),
    ],
)
def test_an_invalid_step_is_one_problem_with_its_position_and_a_hint(
    lines: tuple[str, ...], problem: str
) -> None:
    (found,) = problems_of(steps(*lines))
    assert found.startswith(f"r.yaml:{problem}")


def test_steps_that_are_nested_too_deep_are_rejected() -> None:
    step = f"{{{LOG}}}"
    for _ in range(8):
        step = f"{{parallel: [[{step}]]}}"
    (found,) = problems_of(steps(f"- {step}"))
    assert found == "r.yaml:3:3: action 'a': steps are nested more than 8 deep: flatten them"


@pytest.mark.parametrize(
    ("wait", "problem"),
    [
        ("{until: '08:00', days: WEEKDAYS}", "'WEEKDAYS' are no days of the week"),
        ("{until: '08:00', days: MON-FOO}", "FOO"),
        ("{for: 1h, days: MON}", "has 'days', which belongs to 'until'"),
    ],
)
def test_days_of_a_wait_are_days_of_the_week(wait: str, problem: str) -> None:
    assert problem in problems_of(steps(f"- {{wait: {wait}}}"))[0]


def test_a_step_of_finally_is_checked_like_the_others() -> None:
    branch = "branch: {when: 'alarm.stat == \"open\"', then: [log: {message: x}]}"
    text = f"action: {{name: a, log: {{message: x}}, finally: [{branch}]}}"
    assert "'alarm' has no 'stat'" in problems_of(text)[0]


TICKET = """
event_rule: {name: hot, datapoint: t, above: 80}
---
event_rule: {name: cold, datapoint: t, below: 8}
---
action:
  name: ticket
  steps: [log: {message: opened}, wait: {until_event: 'CONDITION'}, log: {message: closed}]
---
action_rule: {name: tickets, on: alarm, WHENaction: ticketENDS}
"""


@pytest.mark.parametrize(
    ("condition", "when", "ends", "advice"),
    [
        ('type == "alarm-resolved" && owner == trigger.owner', "", "", "[acknowledged]"),
        ('type == "alarm-resolved" && rule == "hot"', "", "", "[acknowledged]"),
        ('type == "alarm-acknowledged"', "", ", ends_with: [acknowledged]", "never"),
        ('type == "alarm-resolved" && rule == "cold"', "when: 'rule == \"hot\"', ", "", None),
        ('type == "alarm-resolved"', "", ", ends_with: never", None),
        ('type == "alarm-resolved"', "", ", ends_with: [acknowledged]", None),
        ('type == "deployed"', "", "", None),
    ],
)
def test_a_wait_for_the_event_that_cancels_the_run_is_refused(
    condition: str, when: str, ends: str, advice: str | None
) -> None:
    text = TICKET.replace("CONDITION", condition).replace("WHEN", when).replace("ENDS", ends)
    if advice is None:
        load_text(text)
    else:
        (problem,) = problems_of(text)
        assert "that event cancels the run" in problem
        assert f"write 'ends_with: {advice}', or move the steps after the wait to 'finally'" in problem
