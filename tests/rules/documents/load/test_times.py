"""Times of rule files: instants, wall times and Unix timestamps, never phrases."""

from __future__ import annotations

import pytest

from rules.documents.load import load_text
from tests.rules.documents.load.problems import problems_of


@pytest.mark.parametrize("at", ["4102444800", "'4102444800'", "4102444800.0", "'2100-01-01T00:00:00Z'"])
def test_a_unix_timestamp_is_stored_as_the_instant(at: str) -> None:
    (document,) = load_text(f"schedule: {{name: s, at: {at}, ends_at: 4102448400}}").documents
    assert (document.data["at"], document.data["ends_at"]) == ("2100-01-01T00:00:00Z", "2100-01-01T01:00:00Z")


def test_a_phrase_is_refused_with_the_reason() -> None:
    (problem,) = problems_of("schedule: {name: s, at: tomorrow at 9am, tz: Europe/London}")
    assert (
        "at 'tomorrow at 9am' depends on when it is read, and a rule file must always mean the same: write the "
        "instant that `tocsin parse-time 'tomorrow at 9am' --tz Europe/London` prints" in problem
    )


def test_a_timestamp_in_milliseconds_is_refused() -> None:
    (problem,) = problems_of("schedule: {name: s, at: 4102444800000}")
    assert "4102444800000 is not a Unix timestamp in seconds" in problem
