"""Documents as YAML: loading the text gives the same documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.documents.load import load_files, load_text
from rules.documents.yaml_text import document_text
from tests.paths import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_comes_back_the_same(path: Path) -> None:
    documents = load_files([path]).documents
    text = "---\n".join(document_text(document.kind, document.data) for document in documents)
    again = load_text(text).documents
    assert [(one.kind, one.name, one.data) for one in again] == [
        (one.kind, one.name, one.data) for one in documents
    ]


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="{}#%\ufffe\uffff\ufeff")))
def test_every_text_comes_back_the_same(message: str) -> None:
    document = {"name": "a", "log": {"message": f"x{message}"}}
    (again,) = load_text(document_text("action", document)).documents
    assert again.data["log"]["message"] == f"x{message}"


@pytest.mark.parametrize(
    "value",
    [
        *("", "~", "null", "true", "on", "yes", "5", "-5.5", "1e5", "007", "09:30", "2026-01-01"),
        *("a: b", "- a", "two\nlines\n", "trailing \nspace", " leading", "#x", "'", '"', "5\n"),
        *(5, 5.0, 1e23, True, None, ["a"]),
    ],
)
def test_a_value_keeps_its_type(value: object) -> None:
    document = {"name": "a", "publish": {"subject": "s", "payload": {"v": value}}}
    (again,) = load_text(document_text("action", document)).documents
    found = again.data["publish"]["payload"]["v"]
    assert (found, type(found)) == (value, type(value))


def test_defaults_are_left_out_and_keys_keep_their_order() -> None:
    (document,) = load_text("schedule: {every: 5s, name: beat, catch_up: latest}").documents
    assert document_text("schedule", document.data) == "schedule:\n  name: beat\n  every: 5s\n"


def test_a_document_of_another_version_is_written_as_it_is_stored() -> None:
    assert document_text("schedule", {"name": "x", "later": 1}) == "schedule:\n  name: x\n  later: 1\n"
