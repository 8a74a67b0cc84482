"""F21: a target has a bounded number of places, and one that does not answer rests."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rules.delivery.target_limits import REST_S, UNANSWERED_LIMIT, TargetBusy, TargetLimits, target_key
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
