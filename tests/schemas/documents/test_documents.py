import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.documents import DOCUMENT_KINDS, ActionDocument, ActionRuleDocument, ScheduleDocument


def schedule(**keys: Any) -> ScheduleDocument:
    return ScheduleDocument.model_validate({"name": "s", "every": "5s"} | keys)


def test_a_schedule_has_the_documented_defaults() -> None:
    assert schedule().model_dump(mode="json") == {
        "name": "s",
        "cron": None,
        "rrule": None,
        "every": "5s",
        "at": None,
        "tz": "UTC",
        "dtstart": None,
        "exdates": [],
        "rdates": [],
        "dst_gap": "forward",
        "dst_fold": "first",
        "spread": None,
        "starts_at": None,
        "ends_at": None,
        "only_in": [],
        "except": [],
        "shift": None,
        "days": None,
        "catch_up": "latest",
        "window": None,
        "grace": None,
        "max_catch_up": 100,
        "type": "schedule-fired",
        "owner": "",
        "payload": {},
        "action": None,
        "retry": None,
        "title": None,
        "description": None,
        "runbook_url": None,
        "enabled": True,
    }


def test_what_a_document_dumps_gives_an_equal_document_back() -> None:
    full = schedule(
        every=None,
        rrule="FREQ=DAILY",
        dtstart="2026-01-05T08:00",
        exdates=["2026-01-06T08:00"],
        window="6h",
        grace="PT30S",
        spread="5m",
        payload={"a": [1, {"b": None}]},
        owner="plant 7 ü",
    )
    data = full.model_dump(mode="json")
    assert json.loads(json.dumps(data)) == data
    assert data["grace"] == "30s"
    assert full.grace == timedelta(seconds=30)
    assert ScheduleDocument.model_validate(data) == full


def test_a_document_cannot_be_changed_after_it_was_checked() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        schedule().name = "other"


@pytest.mark.parametrize("name", ["a", "A-Z_09", "x" * 128])
def test_a_name_is_a_safe_token(name: str) -> None:
    assert schedule(name=name, type=name, action=name).name == name


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ü", "x" * 129, "a\n", "a*", ">", "a\0"])
def test_a_name_that_is_no_safe_token_is_refused(name: str) -> None:
    for field in ("name", "type", "action"):
        with pytest.raises(ValidationError):
            schedule(**{field: name})


def test_an_owner_is_any_text_up_to_128_characters_without_nul() -> None:
    assert schedule(owner="München / halle 7 *").owner == "München / halle 7 *"
    assert schedule(owner="x" * 128).owner == "x" * 128
    for owner in ("x" * 129, "a\0b", "\ud800", 5):
        with pytest.raises(ValidationError):
            schedule(owner=owner)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"every": None}, "needs one of cron, rrule, every or at"),
        ({"cron": "@daily"}, "has both 'cron' and 'every'"),
        ({"dtstart": "2026-01-01T00:00"}, "'dtstart', which belongs to 'rrule', and 'every'"),
        ({"exdates": ["2026-01-01T00:00"]}, "'exdates', which belongs to 'rrule', and 'every'"),
        ({"rdates": ["2026-01-01T00:00"]}, "'rdates', which belongs to 'rrule', and 'every'"),
        ({"max_catch_up": 0}, "greater than or equal to 1"),
        ({"max_catch_up": 10_001}, "less than or equal to 10000"),
        ({"max_catch_up": True}, "valid integer"),
        ({"enabled": "yes"}, "valid boolean"),
        ({"catch_up": "some"}, "'latest', 'all' or 'none'"),
        ({"grace": 10}, "not a duration"),
        ({"payload": []}, "valid dictionary"),
        ({"payload": {"a": float("inf")}}, "not JSON"),
        ({"payload": {"a": "x\0"}}, "U+0000"),
        ({"colour": "red"}, "Extra inputs are not permitted"),
    ],
)
def test_a_wrong_schedule_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        schedule(**keys)
    assert message in str(refused.value)


def test_an_action_rule_listens_to_events_only() -> None:
    rule = {"name": "r", "on": "event", "when": "true", "action": "a"}
    assert ActionRuleDocument.model_validate(rule).enabled is True
    with pytest.raises(ValidationError):
        ActionRuleDocument.model_validate(rule | {"on": "datapoint"})


def test_an_action_has_exactly_one_response() -> None:
    log, publish = {"message": "hello"}, {"subject": "a.b"}
    assert ActionDocument.model_validate({"name": "a", "log": log}).publish is None
    assert ActionDocument.model_validate({"name": "a", "publish": publish}).log is None
    with pytest.raises(ValidationError, match="needs one of log, publish, "):
        ActionDocument.model_validate({"name": "a"})
    with pytest.raises(ValidationError, match="has both 'log' and 'publish'"):
        ActionDocument.model_validate({"name": "a", "log": log, "publish": publish})


def test_every_key_of_every_kind_is_described_and_has_an_example() -> None:
    for model in DOCUMENT_KINDS.values():
        for name, field in model.model_fields.items():
            assert field.description, (model, name)
            assert field.examples, (model, name)


def test_the_examples_in_the_documentation_of_a_key_are_valid() -> None:
    for name, field in ScheduleDocument.model_fields.items():
        for example in field.examples or []:
            keys: dict[str, Any] = {"name": "s", "every": "5s"}
            if name in ("cron", "rrule", "at"):
                del keys["every"]
            if name in ("dtstart", "exdates", "rdates"):
                keys = {"name": "s", "rrule": "FREQ=DAILY"}
            assert ScheduleDocument.model_validate(keys | {field.alias or name: example})
