"""Completion finds the place by indentation, and offers what the models of documents allow there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.documents import DOCUMENT_KINDS
from tests.api.running_api import RunningApi
from tocsin.api.rule_files.complete import complete

NAMES = {"channel": ["mail", "ops"], "datapoint_type": ["room.temperature"], "severity": ["low", "high"]}


def offered(marked: str) -> dict[str, str]:
    """Labels and details at the place of `|`."""
    before, _, _ = marked.partition("|")
    lines = before.split("\n")
    found = complete(marked.replace("|", ""), len(lines), len(lines[-1]) + 1, NAMES)
    return {one.label: one.detail for one in found}


@pytest.mark.parametrize(
    ("marked", "some", "not_these"),
    [
        ("|", {"event_rule", "schedule"}, {"name"}),
        ("event_rule:\n  |", {"name", "datapoint", "fire"}, {"cron"}),
        ("event_rule:\n  name: x\n  fi|", {"fire"}, {"name"}),
        ("event_rule:\n  |\n  name: x\n", {"datapoint"}, set()),
        ("event_rule:\n  notify: |", {"mail", "ops"}, {"high"}),
        ("event_rule:\n  notify:\n    - |", {"mail", "ops"}, {"name"}),
        ("event_rule:\n  severity: h|", {"low", "high"}, set()),
        ("event_rule:\n  datapoint: |", {"room.temperature"}, {"ops"}),
        ("schedule:\n  enabled: |", {"true", "false"}, set()),
        ("schedule:\n  catch_up: |", {"latest", "all", "none"}, set()),
        ("action:\n  steps:\n    - |", {"webhook", "wait"}, {"cron"}),
        ("schedule:\n  name: x\n---\n|", {"channel"}, {"name"}),
        ("schedule:\n  name: x\n---\nchannel:\n  |", {"slack"}, {"cron"}),
    ],
)  # fmt: skip
def test_the_place_decides_what_is_offered(marked: str, some: set[str], not_these: set[str]) -> None:
    found = offered(marked)
    assert some <= set(found), found
    assert not not_these & set(found)


@pytest.mark.parametrize("marked", ["# |", "channel: {|", "event_rule:\n  fire: 'value > |", "unknown:\n  |"])
def test_nothing_is_offered_where_nothing_is_known(marked: str) -> None:
    assert offered(marked) == {}


def test_a_required_key_says_so() -> None:
    assert offered("schedule:\n  |")["name"].startswith("required")


@settings(max_examples=40)
@given(text=st.text("abc:- \n{'#\t", max_size=80), line=st.integers(1, 20), column=st.integers(1, 30))
def test_no_text_is_an_error(text: str, line: int, column: int) -> None:
    kind = next(iter(DOCUMENT_KINDS))
    complete(f"{kind}:\n{text}", line, column, NAMES)


async def test_the_api_offers_the_names_of_applied_documents(api: RunningApi) -> None:
    admin = await api.client("admin:*")
    channel = {"name": "a.yaml", "text": "channel: {name: ops-desk, webhook: {url: 'https://ops.example'}}\n"}
    applied = await admin.post("/v1/rules:apply", {"files": [channel]}, headers={"if-match": "*"})
    assert applied.status == 200, applied
    author = await api.client("author:*")
    place = {"text": "event_rule:\n  notify: ", "line": 2, "column": 11}
    found = (await author.post("/v1/rules:complete", place)).json["completions"]
    assert {"label": "ops-desk", "kind": "name", "detail": "channel"} in found
    viewer = await api.client("viewer:*")
    assert (await viewer.post("/v1/rules:complete", place)).status == 403
