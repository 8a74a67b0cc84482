"""Rule files are loaded as a whole: every problem is reported with its position, or all documents are returned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rules.documents.load import Document, RulesInvalid, load_files, load_text, recurrence_of
from schemas.documents import DOCUMENT_KINDS, ScheduleDocument
from schemas.documents.runbook import RESPONSES
from tests.rules.documents.load.problems import problems_of

ACTION = "action: {name: note, log: {message: hello}}\n---\n"


def only(text: str) -> Document:
    (document,) = load_text(text).documents
    return document


def test_the_error_of_the_readme_has_its_exact_words() -> None:
    text = "schedule:\n  name: daily-digest\n  tz: America/New_York\n\n  # a comment\n  crn: '0 8 * * *'\n"
    assert problems_of(text) == [
        "r.yaml:6:3: unknown key 'crn' in schedule 'daily-digest', did you mean 'cron'?"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "action: {name: x, log: {message: m}, retries: {attempts: 2}}",
            "1:38: unknown key 'retries' in action 'x', it is now called 'retry'",
        ),
        (
            "action: {name: x, log: {message: m}, retry: {first: 1s}}",
            "1:46: unknown key 'first' in action 'x', it is now called 'initial_interval'",
        ),
        (
            "action: {name: x, log: {message: m}, retry: {factor: 2}}",
            "1:46: unknown key 'factor' in action 'x', it is now called 'backoff'",
        ),
        (
            "action: {name: x, log: {message: m}, retry: {longest: 1h}}",
            "1:46: unknown key 'longest' in action 'x', it is now called 'max_interval'",
        ),
        (
            "action_rule: {name: r, on: alarm, action: note, edges: [opened]}",
            "1:49: unknown key 'edges' in action_rule 'r', it is now called 'transitions'",
        ),
        (
            "action_rule: {name: r, on: alarm, action: note, limit: {most: 1, per: 1h}}",
            "1:49: unknown key 'limit' in action_rule 'r', it is now called 'rate_limit'",
        ),
        (
            "action_rule: {name: r, on: alarm, action: note, rate_limit: {most: 1, per: 1h}}",
            "1:62: unknown key 'most' in action_rule 'r', it is now called 'count'",
        ),
        (
            "event_rule: {name: r, datapoint: a.b, above: 1, for_clear: 5m}",
            "1:49: unknown key 'for_clear' in event_rule 'r', it is now called 'keep_firing_for'",
        ),
    ],
)
def test_a_former_key_is_reported_with_its_new_name(text: str, problem: str) -> None:
    assert problems_of(text) == [f"r.yaml:{problem}"]


def test_a_former_key_means_nothing_where_its_new_name_is_unknown() -> None:
    assert problems_of("action: {name: x, log: {message: m, first: 1}}") == [
        "r.yaml:1:37: unknown key 'first' in action 'x', the keys are message"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "1:1: a document must be a mapping with one kind: " + ", ".join(DOCUMENT_KINDS)),
        ("hello", "1:1: a document must be a mapping with one kind: " + ", ".join(DOCUMENT_KINDS)),
        ("{}", "1:1: a document must be a mapping with one kind: " + ", ".join(DOCUMENT_KINDS)),
        ("shedule: {name: a}", "1:1: unknown kind 'shedule', did you mean 'schedule'?"),
        ("zzz: {name: a}", "1:1: unknown kind 'zzz', the kinds are " + ", ".join(DOCUMENT_KINDS)),
        (
            "schedule: {name: a, every: 5s}\naction: {name: b}",
            "2:1: 'action' next to 'schedule': separate documents with a line '---'",
        ),
        ("schedule:", "1:1: 'schedule' must be a mapping with a 'name'"),
        ("schedule: [a]", "1:11: 'schedule' must be a mapping with a 'name'"),
        ("schedule: {every: 5s}", "1:1: missing key 'name' in schedule"),
        ("action: {name: a, log: {}}", "1:19: missing key 'message' in 'log' of action 'a'"),
        (
            "action: {name: a, log: {mesage: x}}",
            "1:25: unknown key 'mesage' in action 'a', did you mean 'message'?",
        ),
        ("action: {name: a, log: hello}", "1:24: 'log' of action 'a' must be a mapping, not 'hello'"),
        (
            "action: {name: a, log: {message: x, qqq: 1}}",
            "1:37: unknown key 'qqq' in action 'a', the keys are message",
        ),
        ("action: {name: a}", f"1:1: action 'a' needs one of {', '.join(RESPONSES)} or steps"),
        (
            "action:\n  name: a\n  publish: {subject: tocsin.x}",
            "3:22: 'publish.subject' of action 'a': "
            "the subject 'tocsin.x' is reserved: start it with another word",
        ),
        (
            "action:\n  name: a\n  log:\n    message: '{{ shedule }}'",
            "4:18: 'log.message' of action 'a': unknown name 'shedule', did you mean 'schedule'?",
        ),
        ("schedule: {name: s}", "1:1: schedule 's' needs one of cron, rrule, every or at"),
        (
            "schedule:\n  name: s\n  every: 5s\n  cron: '@daily'",
            "3:3: schedule 's' has both 'cron' and 'every': keep one of cron, rrule, every and at",
        ),
        (
            "schedule:\n  name: s\n  exdates: ['2026-01-01T00:00']\n  every: 5s",
            "3:3: schedule 's' has 'exdates', which belongs to 'rrule', and 'every': remove 'exdates'",
        ),
        (
            "schedule: {name: a b, every: 5s}",
            "1:18: 'name' of schedule is 'a b': use letters, digits, '_' and '-', at most 128 of them",
        ),
        ("schedule: {name: s, every: 5}", "1:28: 'every' of schedule 's' must be a text, not 5"),
        (
            "schedule: {name: s, every: 5s, enabled: yes}",
            "1:41: 'enabled' of schedule 's' must be true or false, not 'yes'",
        ),
        (
            "schedule: {name: s, every: 5s, enabled: }",
            "1:41: 'enabled' of schedule 's' must be true or false, not empty",
        ),
        (
            "schedule: {name: s, every: 5s, max_catch_up: true}",
            "1:46: 'max_catch_up' of schedule 's' must be a whole number, not true",
        ),
        (
            "schedule: {name: s, every: 5s, max_catch_up: 0}",
            "1:46: 'max_catch_up' of schedule 's' must be greater than or equal to 1, not 0",
        ),
        (
            "schedule: {name: s, every: 5s, catch_up: lates}",
            "1:42: 'catch_up' of schedule 's' must be 'latest', 'all' or 'none', not 'lates', "
            "did you mean 'latest'?",
        ),
        (
            "schedule: {name: s, every: 5s, payload: [1]}",
            "1:41: 'payload' of schedule 's' must be a mapping, not [1]",
        ),
        (
            "schedule: {name: s, rrule: FREQ=DAILY, exdates: x}",
            "1:49: 'exdates' of schedule 's' must be a list, not 'x'",
        ),
        (
            "schedule: {name: s, rrule: FREQ=DAILY, exdates: [x, 5]}",
            "1:53: 'exdates.1' of schedule 's' must be a text, not 5",
        ),
        (
            "schedule: {name: s, every: 5s, owner: '" + "x" * 129 + "'}",
            "1:39: 'owner' of schedule 's' is too long: at most 128 are accepted",
        ),
        (
            "schedule: {name: s, every: 5s, grace: 10}",
            "1:39: 'grace' of schedule 's': 10 is not a duration: "
            "write a number with a unit, such as 90s, 10m, 1h30m, 2d or PT10M",
        ),
        (
            "schedule:\n  name: s\n  cron: '0 8 * * *'\n  tz: Europe/Lodnon",
            "4:7: schedule 's': unknown timezone 'Europe/Lodnon': did you mean 'Europe/London'?",
        ),
        (
            "schedule:\n  name: s\n  every: 5m\n  spread: 5m",
            "4:11: schedule 's': spread 5m must be shorter than the shortest distance between two fires, 5m",
        ),
        (
            "schedule:\n  name: s\n  every: 5m\n  starts_at: soon",
            "4:14: schedule 's': starts_at 'soon' is not a time: write an instant such as "
            "2026-03-10T14:00:00Z, or a wall time in 'tz' such as 2026-03-10T14:00",
        ),
        (
            "action_rule: {name: r, on: datapoint, when: 'true', action: note}",
            "1:28: 'on' of action_rule 'r' must be 'event' or 'alarm', not 'datapoint'",
        ),
    ],
)
def test_an_invalid_document_is_one_problem_with_its_position_and_a_hint(text: str, problem: str) -> None:
    assert problems_of(text) == [f"r.yaml:{problem}"]


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ("cron: '61 8 * * *'", "3:9"),
        ("rrule: FREQ=SOMETIMES", "3:10"),
        ("every: 5", "3:10"),
        ("at: tomorrow", "3:7"),
        ("cron: '0 0 30 2 *'", "3:9"),
        ("rrule: FREQ=DAILY\n  dtstart: 2026-01-01T00:00:00Z", "4:12"),
        ("rrule: FREQ=DAILY\n  exdates: [never]", "4:12"),
        ("every: 5s\n  starts_at: 2026-02-01T00:00\n  ends_at: 2026-01-01T00:00", "5:12"),
    ],
)
def test_an_invalid_recurrence_is_reported_at_its_key(keys: str, place: str) -> None:
    (problem,) = problems_of(f"schedule:\n  name: s\n  {keys}\n")
    assert problem.startswith(f"r.yaml:{place}: ")
    assert "schedule 's'" in problem


def test_a_one_shot_may_be_spread() -> None:
    assert only("schedule: {name: s, at: 2027-01-01T00:00:00Z, spread: 5m}").name == "s"


def test_all_problems_of_a_file_are_reported_at_once_and_in_order() -> None:
    text = (
        "schedule: {name: a, every: 5s, colour: red, enabled: 1}\n---\n"
        "schedule: {name: b, cron: '* * * *'}\n---\n"
        "action_rule:\n  name: r\n  on: event\n"
        '  when: \'orgin == "x" && severity == "high"\'\n  action: nope\n'
    )
    assert [problem.split(": ")[0] for problem in problems_of(text)] == [
        "r.yaml:1:32",
        "r.yaml:1:54",
        "r.yaml:3:27",
        "r.yaml:8:10",
        "r.yaml:8:35",
        "r.yaml:9:11",
    ]


def test_an_error_in_a_condition_has_its_position_in_the_file() -> None:
    text = (
        ACTION
        + "action_rule:\n  name: r\n  on: event\n  action: note\n"
        + "  when: |\n    seq > 1 &&\n      orgin == owner\n"
    )
    assert problems_of(text) == [
        "r.yaml:9:7: 'when' of action_rule 'r': undeclared reference to 'orgin', did you mean 'origin'?"
    ]


def test_a_name_may_be_used_once_per_kind_across_all_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("schedule: {name: x, every: 5s}\n---\naction: {name: x, log: {message: m}}\n")
    second.write_text("\nschedule:\n  name: x\n  every: 9s\n")
    with pytest.raises(RulesInvalid) as refused:
        load_files([first, second])
    assert str(refused.value) == f"{second}:3:9: schedule 'x' is defined twice, first at {first}:1:18"
    assert len(load_files([first]).documents) == 2


def rule(when: str, action: str = "note") -> str:
    return f"action_rule: {{name: r, on: event, when: '{when}', action: {action}}}\n"


def test_a_rule_may_only_refer_to_an_existing_action() -> None:
    assert problems_of(ACTION + rule("true", "nota")) == [
        "r.yaml:3:57: unknown action 'nota' in action_rule 'r', did you mean 'note'?"
    ]
    assert problems_of("schedule: {name: s, every: 5s, action: page}") == [
        "r.yaml:1:40: unknown action 'page' in schedule 's', no action of this name is defined"
    ]
    assert load_text(rule("true", "note"), known={"action": frozenset({"note"})}).documents


def test_the_order_of_documents_does_not_matter() -> None:
    text = rule('schedule == "s"') + "---\n" + ACTION + "schedule: {name: s, every: 5s}"
    assert [document.kind for document in load_text(text).documents] == ["action_rule", "action", "schedule"]


def test_a_condition_may_only_refer_to_existing_schedules_if_they_are_known() -> None:
    named = ACTION + rule('schedule == "hartbeat"')
    assert load_text(named).documents
    problem = "r.yaml:3:54: 'when' of action_rule 'r': unknown schedule 'hartbeat', did you mean 'heartbeat'?"
    assert problems_of(named + "---\nschedule: {name: heartbeat, every: 5s}") == [problem]
    assert problems_of(named, {"schedule": frozenset({"heartbeat"})}) == [problem]
    assert load_text(named, known={"schedule": frozenset({"hartbeat"})}).documents


def test_an_invalid_schedule_is_not_reported_again_by_references() -> None:
    text = (
        ACTION
        + rule('schedule == "s"')
        + "---\nschedule: {name: s, evry: 5s}\n---\nschedule: {name: t, every: 5s}"
    )
    assert problems_of(text) == ["r.yaml:5:21: unknown key 'evry' in schedule 's', did you mean 'every'?"]


def test_documents_behind_a_syntax_error_are_not_reported_as_missing() -> None:
    text = rule('schedule == "s"') + "---\nschedule: {name: t, every: 5s}\n---\na: [\n"
    assert problems_of(text) == ["r.yaml:6:1: not valid YAML: did not find expected node content"]


def test_a_document_has_its_position_and_canonical_data() -> None:
    document = load_text(
        "# first\n---\nschedule:\n  name: s\n  rrule: FREQ=DAILY\n"
        "  grace: PT90S\n  exdates: [2026-01-01T08:00]\n"
    ).documents[0]
    assert (document.kind, document.name, document.line, document.column) == ("schedule", "s", 3, 1)
    assert document.data["grace"] == "1m30s"
    assert document.data["exdates"] == ["2026-01-01T08:00"]
    assert ScheduleDocument.model_validate(document.data) == document.model


def test_equal_documents_have_equal_data_however_they_are_written() -> None:
    block = "schedule:\n  grace: 1m30s\n  every: '5s'\n  name: s\n  enabled: true\n"
    assert only(block).data == only("schedule: {name: s, every: 5s, grace: PT90S}").data
    assert only(block).data != only("schedule: {name: s, every: 5s, grace: PT91S}").data


def test_bounds_written_as_wall_times_are_read_in_the_timezone_of_the_schedule() -> None:
    document = only(
        "schedule: {name: s, cron: '0 * * * *', tz: America/New_York, "
        "starts_at: 2026-07-01T08:00, ends_at: '2026-07-01T14:00:00Z'}"
    )
    assert isinstance(document.model, ScheduleDocument)
    recurrence = recurrence_of(document.model, anchor=None, hash_id="s")
    start = datetime(2026, 7, 1, 12, tzinfo=UTC)
    fires = recurrence.occurrences(start - timedelta(days=9), start + timedelta(days=9), 100)
    assert [fire.at.hour for fire in fires] == [12, 13, 14]


def test_a_bound_in_a_repeated_hour_includes_both_passes() -> None:
    document = only(
        "schedule: {name: s, every: 30m, tz: America/New_York, "
        "starts_at: 2026-11-01T01:00, ends_at: 2026-11-01T01:00}"
    )
    assert isinstance(document.model, ScheduleDocument)
    recurrence = recurrence_of(document.model, anchor=datetime(2026, 1, 1, tzinfo=UTC), hash_id="s")
    fires = recurrence.occurrences(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), 100)
    assert [fire.at.isoformat()[11:16] for fire in fires] == ["05:00", "05:30", "06:00"]
