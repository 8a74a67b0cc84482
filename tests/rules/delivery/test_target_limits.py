"""F21: a target has a bounded number of places, and one that does not answer rests."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rules.delivery.target_limits import (
    LONGEST_TURN_S,
    REST_S,
    UNANSWERED_LIMIT,
    TargetBusy,
    TargetLimits,
    target_key,
)
from schemas.documents.targets import AppriseTarget, EmailTarget, SlackTarget, Target, WebhookTarget


def let_down(limits: TargetLimits, key: str, now_s: float) -> None:
    for _ in range(UNANSWERED_LIMIT):
        limits.begin(key)
        limits.end(key, now_s, answered=False)


def test_a_target_has_its_places_and_others_have_theirs() -> None:
    limits = TargetLimits(2)
    limits.begin("a:443")
    limits.begin("a:443")
    with pytest.raises(TargetBusy, match="2 deliveries to a:443 are running"):
        limits.begin("a:443")
    limits.begin("b:443")
    limits.end("a:443", 0, answered=True)
    limits.begin("a:443")


def test_a_target_that_does_not_answer_rests_and_is_then_tried_by_one_delivery() -> None:
    limits = TargetLimits(2)
    let_down(limits, "a:443", 100.0)
    assert limits.rest("a:443", 110.0) == timedelta(seconds=REST_S - 10)
    assert limits.rest("b:443", 110.0) is None
    assert limits.rest("a:443", 100.0 + REST_S) is None
    limits.begin("a:443")
    assert limits.rest("a:443", 100.0 + REST_S) == timedelta(seconds=REST_S), "one at a time"
    limits.end("a:443", 140.0, answered=False)
    assert limits.rest("a:443", 140.0) == timedelta(seconds=REST_S)
    limits.begin("a:443")
    limits.end("a:443", 180.0, answered=True)
    assert limits.rest("a:443", 180.0) is None


def test_an_answer_in_between_begins_the_count_again() -> None:
    limits = TargetLimits(2)
    for _ in range(3):
        for answered in (*(False,) * (UNANSWERED_LIMIT - 1), True):
            limits.begin("a:443")
            limits.end("a:443", 5.0, answered=answered)
            assert limits.rest("a:443", 5.0) is None


@pytest.mark.parametrize(
    ("model", "document", "key"),
    [
        (WebhookTarget, {"url": "https://Hooks.example.com/a?b"}, "hooks.example.com"),
        (WebhookTarget, {"url": "https://hooks.example.com:8443/a"}, "hooks.example.com:8443"),
        (WebhookTarget, {"url": {"secret": "hook-url"}}, "secret hook-url"),
        (SlackTarget, {"url": {"secret": "slack-url"}}, "secret slack-url"),
        (AppriseTarget, {"url": {"secret": "telegram-url"}}, "secret telegram-url"),
        (
            EmailTarget,
            {"smtp": {"host": "smtp.example.com"}, "from": "a@example.com", "to": ["b@example.com"]},
            "smtp.example.com:starttls",
        ),
    ],
)
def test_the_key_of_a_target_has_no_secret(model: type[Target], document: object, key: str) -> None:
    assert target_key(model.model_validate(document)) == key


def test_deliveries_without_a_place_have_turns_at_the_rate_of_the_target() -> None:
    limits = TargetLimits(2)
    limits.begin("a:443")
    for _ in range(100):
        limits.begin("a:443")
        limits.end("a:443", 0.0, answered=True, took_s=4.0)
    limits.begin("a:443")
    assert not limits.has_place("a:443")
    assert [round(limits.turn_s("a:443", 50.0), 3) for _ in range(3)] == [2, 4, 6]
    assert round(limits.turn_s("a:443", 56.0), 3) == 2, "turns that have passed are free"
    assert max(limits.turn_s("a:443", 56.0) for _ in range(1_000)) == LONGEST_TURN_S
    assert limits.has_place("b:443")
