"""Checks of `maintenance` and `inhibit` documents."""

from __future__ import annotations

import pytest

from rules.documents.load import load_text
from tests.rules.documents.load.problems import problems_of

_WEEKLY = "cron: '30 2 * * SUN', tz: Europe/Berlin, duration: 2h"


@pytest.mark.parametrize(
    "text",
    [
        f"maintenance: {{name: m, where: 'labels.site == \"ams\"', {_WEEKLY}}}",
        "maintenance: {name: m, where: 'true', at: '2027-01-01T00:00:00Z', duration: 30d, reason: move}",
        "maintenance: {name: m, where: 'true', every: 1h, duration: 1h}",
        "maintenance: {name: m, where: 'true', cron: '0 18 * * FRI', duration: 62h}",
        "maintenance: {name: m, where: 'true', cron: '0 2 1 * *', duration: 5h, enabled: false}",
        "inhibit: {name: i, source: 'rule == \"a\"', target: 'rule != \"a\"', equal: [owner, labels.site]}",
        "inhibit: {name: i, source: 'severity >= high', target: 'severity < high'}",
    ],
)
def test_documents_of_suppression_load(text: str) -> None:
    assert len(load_text(text).documents) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            f"maintenance: {{name: m, where: 'ownr == \"x\"', {_WEEKLY}}}",
            "1:32: 'where' of maintenance 'm': undeclared reference to 'ownr', did you mean 'owner'?",
        ),
        (
            "maintenance: {name: m, where: 'true', cron: '0 25 * * *', duration: 2h}",
            "1:45: maintenance 'm': cron",
        ),
        (
            "maintenance: {name: m, where: 'true', every: 1h, duration: 2h}",
            "1:60: maintenance 'm': the duration 2h is longer than the shortest distance between two windows, 1h",
        ),
        (
            "maintenance: {name: m, where: 'true', every: 1h, duration: 0s}",
            "maintenance 'm' lasts 0s: write more than 0s and at most 366d",
        ),
        (
            "maintenance: {name: m, where: 'true', cron: '0 2 * * *', tz: Europe/Berln, duration: 2h}",
            "1:62: maintenance 'm': ",
        ),
        ("maintenance: {name: m, where: 'true', duration: 2h}", "needs one of cron, rrule, every or at"),
        ("maintenance: {name: m, cron: '0 2 * * *', duration: 2h}", "missing key 'where' in maintenance 'm'"),
        (
            "inhibit: {name: i, source: 'true', target: 'severity >= \"high\"'}",
            "1:54: 'target' of inhibit 'i': '>=' cannot be applied to int and string",
        ),
        (
            "inhibit: {name: i, source: 'true', target: 'true', equal: [site]}",
            "'site' cannot be compared: use owner, rule, key, instance, severity or labels.<name>",
        ),
    ],
)
def test_a_mistake_in_a_document_of_suppression_has_its_place(text: str, problem: str) -> None:
    assert problem in "\n".join(problems_of(text))
