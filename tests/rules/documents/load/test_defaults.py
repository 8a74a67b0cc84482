"""A `defaults` document gives keys to the documents that follow it in its file."""

from __future__ import annotations

from rules.documents.load import load_text
from schemas.documents import EventRuleDocument
from tests.rules.documents.load.problems import problems_of

CHANNEL = '---\nchannel: {name: ops, webhook: {url: "https://hooks.example.com/x"}}\n'
DEFAULTS = """\
defaults:
  event_rule: {severity: high, notify: [ops], for: 5m}
  schedule:
    tz: America/New_York
---
event_rule: {name: hot, datapoint: t, above: 5}
---
event_rule: {name: mild, datapoint: t, above: 1, severity: info, notify: []}
---
schedule: {name: daily, cron: "@daily"}
"""


def test_documents_have_the_keys_that_they_leave_out() -> None:
    documents = {document.name: document.model for document in load_text(DEFAULTS + CHANNEL).documents}
    hot, mild = documents["hot"], documents["mild"]
    assert isinstance(hot, EventRuleDocument)
    assert isinstance(mild, EventRuleDocument)
    assert (hot.severity, hot.notify) == ("high", ("ops",))
    assert (mild.severity, mild.notify, mild.for_) == ("info", (), hot.for_)
    assert documents["daily"].model_dump()["tz"] == "America/New_York"


def test_documents_before_the_defaults_and_of_other_files_are_left_alone() -> None:
    text = "event_rule: {name: first, datapoint: t, above: 5}\n---\n" + DEFAULTS + CHANNEL
    first = load_text(text).documents[0].model
    assert isinstance(first, EventRuleDocument)
    assert first.severity != "high"


def test_a_problem_of_a_default_is_reported_where_it_is_written() -> None:
    assert problems_of(DEFAULTS.replace("severity: high", "severity: hgh") + CHANNEL)[0].startswith(
        "r.yaml:2:26: 'severity' of event_rule 'hot'"
    )
    assert problems_of("defaults: {event_rule: {severty: high}}\n---\n" + CHANNEL[4:]) == [
        "r.yaml:1:25: unknown key 'severty' in the defaults of event_rule, did you mean 'severity'?"
    ]
    assert problems_of("defaults: {event_rle: {severity: high}}\n---\n" + CHANNEL[4:]) == [
        "r.yaml:1:12: unknown kind 'event_rle' in defaults, did you mean 'event_rule'?"
    ]
    assert problems_of("defaults: {event_rule: {name: x}}\n---\n" + CHANNEL[4:]) == [
        "r.yaml:1:25: 'name' cannot be a default, each event_rule has its own"
    ]
    assert problems_of("defaults: [a]\n---\n" + CHANNEL[4:]) == [
        "r.yaml:1:11: 'defaults' must be a mapping from kinds to their keys"
    ]


def test_merge_keys_point_to_defaults() -> None:
    (problem,) = problems_of("event_rule: {<<: 1}\n")
    assert problem.endswith("merge keys are not supported, use a 'defaults' document or write the keys out")
