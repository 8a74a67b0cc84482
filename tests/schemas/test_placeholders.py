from datetime import UTC, datetime
from typing import Any

import pytest

from schemas.placeholders import check_placeholders, fill, fill_subject, fill_text
from tocsin.core.errors import InvalidInput

EVENT: dict[str, Any] = {
    "schedule": "daily-digest",
    "severity": 4,
    "ts": datetime(2026, 3, 8, 12, tzinfo=UTC),
    "payload": {"count": 3, "device": {"name": "pump {{ owner }}"}, "list": [1, "b"], "dash-ed": True},
}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("no placeholder", "no placeholder"),
        ("{{ schedule }} fired", "daily-digest fired"),
        ("{{schedule}}/{{  severity  }}", "daily-digest/4"),
        ("at {{ ts }}", "at 2026-03-08T12:00:00Z"),
        ("{{ payload.device.name }}!", "pump {{ owner }}!"),
        ("n={{ payload.count }} l={{ payload.list }} d={{ payload.dash-ed }}", 'n=3 l=[1, "b"] d=true'),
        ("owner '{{ owner }}'", "owner ''"),
        ("{ not one }", "{ not one }"),
    ],
)
def test_placeholders_are_filled_from_the_event(template: str, filled: str) -> None:
    check_placeholders(template)
    assert fill_text(template, EVENT) == filled


def test_a_text_that_is_one_placeholder_keeps_the_type_of_the_value() -> None:
    template = {
        "n": "{{ payload.count }}",
        "all": "{{payload.list}}",
        "ts": "{{ ts }}",
        "x": ["{{ severity }}", 1],
    }
    check_placeholders(template)
    assert fill(template, EVENT) == {"n": 3, "all": [1, "b"], "ts": "2026-03-08T12:00:00Z", "x": [4, 1]}
    assert fill("{{ payload.count }}{{ payload.count }}", EVENT) == "33"


def test_a_value_in_a_subject_is_encoded() -> None:
    template = "a.{{ payload.device.name }}.b"
    assert fill_subject(template, EVENT, lambda text: text[:4].upper()) == "a.PUMP.b"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ scheduel }}", "unknown name 'scheduel' in '{{ scheduel }}', did you mean 'schedule'?"),
        (
            "{{ x }}",
            "unknown name 'x' in '{{ x }}', an event has origin, type, schedule, rule, action, owner, id, "
            "correlation_id, severity, seq, ts, recorded_at, payload",
        ),
        (
            "{{ schedule.name }}",
            "'{{ schedule.name }}' cannot be filled: 'schedule' of an event has no parts",
        ),
        ("{{ 1 + 1 }}", "'{{ 1 + 1 }}' is not a placeholder: write a dotted path such as {{ payload.key }}"),
        ("{{}}", "'{{}}' is not a placeholder: write a dotted path such as {{ payload.key }}"),
        ("a {{ b", "'a {{ b' has a '{{' without its '}}'"),
    ],
)
def test_a_placeholder_that_no_event_could_fill_is_refused(template: str, message: str) -> None:
    for place in (template, [template], {"a": {"b": [template]}}):
        with pytest.raises(InvalidInput) as refused:
            check_placeholders(place)
        assert str(refused.value) == message


def test_a_payload_key_that_is_missing_at_run_time_is_an_error() -> None:
    for path in ("payload.nope", "payload.count.deeper"):
        with pytest.raises(InvalidInput, match=f"the event has no '{path}'"):
            fill_text(f"{{{{ {path} }}}}", EVENT)
