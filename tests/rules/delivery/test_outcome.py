from datetime import UTC, datetime, timedelta

import pytest

from rules.delivery.outcome import outcome_of_answer, retry_after

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((status, "delivered") for status in (200, 201, 202, 204, 299)),
        *((status, "permanent") for status in (301, 302, 303, 307, 308, 304)),
        *((status, "permanent") for status in (400, 401, 403, 404, 409, 410, 413, 422)),
        *((status, "retryable") for status in (408, 425, 429, 500, 502, 503, 504, 599)),
    ],
)
def test_every_status_is_one_of_three_outcomes(status: int, state: str) -> None:
    outcome = outcome_of_answer("hooks.example:443", status, {}, "why", NOW)
    assert outcome.state == state
    assert outcome.result == {"target": "hooks.example:443", "status": status}
    assert f"hooks.example:443 answered {status}" in outcome.text
    assert ("why" in outcome.text) == (status >= 400)


def test_a_redirect_is_permanent_with_a_remedy() -> None:
    text = outcome_of_answer("h:1", 302, {}, "", NOW).text
    assert text == "h:1 answered 302, a redirect, which is not followed: set the final url"


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("0", timedelta(0)),
        ("120", timedelta(seconds=120)),
        (" 120 ", timedelta(seconds=120)),
        ("3601", timedelta(hours=1)),
        ("9" * 5000, timedelta(hours=1)),
        ("Tue, 17 Nov 2026 12:00:30 GMT", timedelta(seconds=30)),
        ("Tue, 17 Nov 2026 11:59:30 GMT", None),
        ("Fri, 17 Nov 2999 12:00:30 GMT", timedelta(hours=1)),
        ("Tue, 17 Nov 99999 12:00:30 GMT", None),
    ],
)
def test_the_retry_after_of_a_server_counts_up_to_an_hour(value: str, wait: timedelta | None) -> None:
    assert retry_after(value, NOW) == wait
    assert outcome_of_answer("h:1", 429, {"Retry-After": value}, "", NOW).retry_after == wait
    assert outcome_of_answer("h:1", 400, {"Retry-After": value}, "", NOW).retry_after is None
