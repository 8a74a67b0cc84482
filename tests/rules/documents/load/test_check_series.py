"""Problems of event_rule, datapoint_type and system documents: position and message."""

import pytest

from rules.documents.load import RulesInvalid, load_text
from schemas.documents import DatapointTypeDocument
from tests.rules.documents.load.problems import problems_of

NUMBER = "datapoint_type: {name: temperature, key: dsp.temperature, value: number}\n---\n"


def event_rule(*lines: str) -> str:
    return "event_rule:\n  name: hot\n" + "".join(f"  {line}\n" for line in lines)


OVER = "datapoint: dsp.temperature"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "1:1: event_rule 'hot' needs 'datapoint', 'event' or 'alarms'"),
        ([OVER], "1:1: event_rule 'hot' needs one of fire, above, below, absent, rate_increase"),
        (
            [OVER, "event: x", "fire: 'true'"],
            "4:3: event_rule 'hot' has both 'datapoint' and 'event': keep one",
        ),
        ([OVER, "above: 1", "below: 2"], "5:3: event_rule 'hot' has both 'above' and 'below': keep one"),
        ([OVER, "above: hot"], "4:10: 'above' of event_rule 'hot' must be a number, not 'hot'"),
        ([OVER, "above: 1", "fro: 5m"], "5:3: unknown key 'fro' in event_rule 'hot', did you mean 'for'?"),
        (
            [OVER, "above: 1", "for: 10"],
            "5:8: 'for' of event_rule 'hot': 10 is not a duration: write a number with",
        ),
        (
            [OVER, "above: 1", "for: 0s"],
            "5:8: 'for' of event_rule 'hot': it must be longer than 0s: leave the key",
        ),
        (
            [OVER, "above: 1", "severity: hihg"],
            "5:13: 'severity' of event_rule 'hot': unknown severity 'hihg', did",
        ),
        ([OVER, "absent: false"], "4:11: 'absent' of event_rule 'hot' must be true, not false"),
        (
            [OVER, "above: 1", "no_data_for: 5m"],
            "5:3: event_rule 'hot' has 'no_data_for' without effect: add 'no_data: alarm' or 'resolve'",
        ),
        (
            [OVER, "absent: true", "no_data: alarm"],
            "5:3: event_rule 'hot' fires on 'absent' already: remove 'no_data'",
        ),
        (
            [OVER, "rate_increase: 1", "window: {over: 1m, reduce: avg}"],
            "4:3: event_rule 'hot' has 'window': write 'reduce: rate' and 'above' instead",
        ),
        (
            [OVER, "above: 1", "window: {over: 1m, reduce: mean}"],
            "5:30: 'window.reduce' of event_rule 'hot' must be 'avg', 'min', 'max', 'sum', 'count' or 'rate'",
        ),
        (
            [OVER, "above: 1", "window: {oevr: 1m, reduce: avg}"],
            "5:12: unknown key 'oevr' in event_rule 'hot', did you mean 'over'?",
        ),
        (
            ["datapoint: dsp.t*", "above: 1"],
            "3:14: 'datapoint' of event_rule 'hot': 'dsp.t*' is not a key or",
        ),
        (
            ["event: down"],
            "3:3: event_rule 'hot' would never resolve: add 'clear', and let 'event' match the event",
        ),
        (
            ["event: down", "clear: 'true'", "window: {over: 1m, reduce: avg}"],
            "5:3: event_rule 'hot' is over events, which have no value: remove 'window'",
        ),
        (
            ["event: down", "fire: 'value > 1'"],
            "4:10: 'fire' of event_rule 'hot': undeclared reference to 'value'",
        ),
        (
            [OVER, "fire: 'vlaue > 1.0'"],
            "4:10: 'fire' of event_rule 'hot': undeclared reference to 'vlaue', did you",
        ),
        (
            [OVER, "fire: value"],
            "4:9: 'fire' of event_rule 'hot': a condition must be true or false, this is of type",
        ),
        (
            [OVER, "above: 1", "clear: 'value <'"],
            "5:18: 'clear' of event_rule 'hot': the condition ends too early",
        ),
        (
            [OVER, "above: 1", "where: 'value > 1'"],
            "5:11: 'where' of event_rule 'hot': 'value' is not known in 'where', which selects series by owner",
        ),
        (
            [OVER, "fire: 'age > 5.0'"],
            "4:14: 'fire' of event_rule 'hot': '>' cannot be applied to duration and double",
        ),
        (
            [OVER, "above: 1", "message: '{{ vlaue }}'"],
            "5:16: 'message' of event_rule 'hot': unknown name 'vlaue', did you mean 'value'?",
        ),
        (
            [OVER, "above: 1", "notify: [ops]"],
            "5:12: unknown channel 'ops' in event_rule 'hot', no channel of this",
        ),
    ],
)
def test_an_invalid_event_rule_is_one_problem_with_its_position_and_a_hint(
    lines: list[str], problem: str
) -> None:
    (found,) = problems_of(event_rule(*lines))
    assert found.startswith(f"r.yaml:{problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "fire: value > 65",
            "6:15: 'fire' of event_rule 'hot': '>' cannot be applied to double and int, write 65.0",
        ),
        ("fire: value > 'x'", "6:15: 'fire' of event_rule 'hot': '>' cannot be applied to double and string"),
        (
            "fire: previous == 1",
            "6:18: 'fire' of event_rule 'hot': '==' cannot be applied to double and int, write 1.0",
        ),
    ],
)
def test_a_condition_is_checked_against_the_declared_type(line: str, problem: str) -> None:
    text = event_rule(OVER, line)
    assert problems_of(NUMBER + text) == [f"r.yaml:{problem}"]
    assert load_text(text).documents, "nothing is known about the value"


def test_a_type_that_is_applied_already_counts_like_one_in_the_files() -> None:
    known = DatapointTypeDocument.model_validate({"name": "t", "key": "dsp.*", "value": "string"})
    with pytest.raises(
        Exception, match="'above' of event_rule 'hot' cannot be used: '>' cannot be applied to string"
    ):
        load_text(event_rule(OVER, "above: 65"), applied=[known])
    edited = "---\ndatapoint_type: {name: t, key: 'dsp.*', value: number}\n"
    assert load_text(event_rule(OVER, "above: 65") + edited, applied=[known]).documents


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (["absent: true"], "4:11: 'absent'"),
        (["above: 1", "no_data: alarm"], "5:12: 'no_data'"),
        (["""fire: 'freshness == "stale"'"""], "4:9: 'fire'"),
    ],
)
def test_a_rule_that_waits_for_missing_data_needs_a_watched_series(lines: list[str], place: str) -> None:
    text = event_rule(OVER, *lines)
    (found,) = problems_of(text + "---\ndatapoint_type: {name: t, key: dsp.temperature}\n")
    assert found == (
        f"r.yaml:{place} of event_rule 'hot' waits for missing data, and no datapoint_type with 'interval' "
        "or 'heartbeat' covers 'dsp.temperature': declare one"
    )
    assert load_text(text + "---\ndatapoint_type: {name: t, key: 'dsp.*', heartbeat: 1m}\n").documents
    (without_types,) = problems_of(text)
    assert without_types == found, "an apply would refuse it"


def test_a_condition_that_reads_freshness_cannot_have_no_data() -> None:
    watched = "---\ndatapoint_type: {name: t, key: 'dsp.*', heartbeat: 1m}\n"
    rule = event_rule(OVER, """fire: 'freshness == "stale"'""", "no_data: alarm")
    assert problems_of(rule + watched) == [
        "r.yaml:5:3: event_rule 'hot' reads freshness or age itself: remove 'no_data'"
    ]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            ["interval: 1m", "heartbeat: 1m"],
            "5:3: datapoint_type 't' has both 'interval' and 'heartbeat': keep one",
        ),
        (
            ["interval: 1m", "tolerance: 1"],
            "5:14: 'tolerance' of datapoint_type 't' must be greater than 1, not 1",
        ),
        (
            ["on_stale: alarm"],
            "4:3: datapoint_type 't' has 'on_stale: alarm' and is never watched: add 'interval'",
        ),
        (
            ["interval: 1m", "for: 5m"],
            "5:3: datapoint_type 't' has 'for' without effect: it belongs to 'on_stale: alarm'",
        ),
        (
            ["value: float"],
            "4:10: 'value' of datapoint_type 't' must be 'number', 'string' or 'bool', not 'float'",
        ),
        (
            ["interval: 1m", "on_stale: alarm", "notify: [ops]"],
            "6:12: unknown channel 'ops' in datapoint_type 't'",
        ),
    ],
)
def test_an_invalid_datapoint_type_is_one_problem_with_its_position_and_a_hint(
    lines: list[str], problem: str
) -> None:
    text = "datapoint_type:\n  name: t\n  key: k\n" + "".join(f"  {line}\n" for line in lines)
    (found,) = problems_of(text)
    assert found.startswith(f"r.yaml:{problem}")


def test_two_types_cannot_claim_one_key() -> None:
    text = "datapoint_type: {name: a, key: 'k.*'}\n---\ndatapoint_type: {name: b, key: 'k.*'}\n"
    assert problems_of(text) == [
        "r.yaml:3:32: datapoint_type 'b' claims 'k.*', which datapoint_type 'a' has: keep one"
    ]


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ("[]", "system 's' has no required member, so its health would always be ok: add one"),
        ("[{owner: a}]", "system 's' cannot be read: a member needs 'key' or 'type'"),
        ("[{owner: a, key: k, type: t}]", "system 's' cannot be read: a member has both 'key' and 'type'"),
        ("[{owner: a, key: 'k.*'}]", "'members.0.key' of system 's': 'k.*' is not a key"),
        ("[{owner: a, kye: k}]", "unknown key 'kye' in system 's', did you mean 'key'?"),
        ("[{owner: a, key: k}, {owner: a, key: k}]", "system 's' names the member k of a twice"),
        (
            "[{owner: a, key: k, required: false}]",
            "system 's' has no required member, so its health would",
        ),
        ("[{system: low}]", "system 's' cannot have the system 'low' as a member: name the series of 'low'"),
        (
            "[{owner: a, key: k}, {owner: low, key: system.health}]",
            "system 's' cannot have the system 'low' as a member: name the series of 'low' instead",
        ),
        ("[{owner: a, type: t}]", "unknown datapoint_type 't' in system 's', no datapoint_type of this name"),
    ],
)
def test_an_invalid_system_is_rejected(members: str, problem: str) -> None:
    found = problems_of(f"system: {{name: s, members: {members}}}")
    assert problem in found[0]


def test_a_stored_document_equals_the_one_of_the_file() -> None:
    text = event_rule(OVER, "above: 65", "for: 90s", "window: {over: 1h, reduce: avg}")
    (document,) = load_text(text).documents
    assert document.data["for"] == "1m30s"
    assert type(document.model).model_validate(document.data) == document.model


def test_nothing_is_reported_as_missing_that_a_cut_file_may_contain() -> None:
    text = (
        event_rule(OVER, "absent: true", "notify: [ops]")
        + "---\ndatapoint_type: {name: t, key: x}\n---\na: b: c\n"
    )
    (found,) = problems_of(text)
    assert found.startswith("r.yaml:9:")


def test_a_type_cannot_claim_the_key_of_one_that_is_applied_already() -> None:
    known = DatapointTypeDocument.model_validate({"name": "t", "key": "k"})
    with pytest.raises(RulesInvalid, match="'new' claims 'k', which datapoint_type 't' has: keep one"):
        load_text("datapoint_type: {name: new, key: k}", applied=[known])


def test_existing_channels_and_types_may_be_referred_to() -> None:
    text = event_rule(OVER, "above: 1", "notify: [ops]")
    system = "---\nsystem: {name: s, members: [{owner: a, type: t}, {owner: a, key: k, required: false}]}\n"
    known = {"channel": frozenset({"ops"}), "datapoint_type": frozenset({"t"})}
    assert len(load_text(text + system, known=known).documents) == 2


def test_a_type_may_not_break_a_rule_that_is_applied_and_not_in_the_files() -> None:
    (rule,) = load_text(event_rule(OVER, "above: 65")).documents
    text = "datapoint_type:\n  name: t\n  key: dsp.*\n  value: string\n"
    with pytest.raises(RulesInvalid) as refused:
        load_text(text, file="r.yaml", applied=[rule.model])
    assert str(refused.value) == (
        "r.yaml:4:10: datapoint_type 't' would break event_rule 'hot', which is applied: 'fire':"
        " '>' cannot be applied to string and double: change both in one apply"
    )
    assert load_text(
        text + "---\n" + event_rule(OVER, "fire: value == 'hot'"), applied=[rule.model]
    ).documents
    assert load_text(text.replace("string", "number"), applied=[rule.model]).documents
