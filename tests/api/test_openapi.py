"""The OpenAPI document: committed, valid, and complete about errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from openapi_spec_validator import validate

from tocsin.api.app import create_api

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
API: dict[str, Any] = create_api().openapi()
OPERATIONS = [
    (f"{method.upper()} {path}", described)
    for path, methods in API["paths"].items()
    for method, described in methods.items()
]


def test_the_committed_document_is_that_of_the_app() -> None:
    """`python -m tocsin.api` writes it. Read the difference: clients depend on it."""
    assert json.loads(DOCUMENT.read_text(encoding="utf-8")) == API


def test_the_document_is_valid() -> None:
    assert API["openapi"] == "3.1.0"
    validate(API)


def test_every_error_is_a_problem() -> None:
    for name, described in OPERATIONS:
        errors = {status: answer for status, answer in described["responses"].items() if status[0] in "45"}
        assert set(errors) >= {"4XX", "5XX"}, name
        for status, answer in errors.items():
            assert set(answer["content"]) == {"application/problem+json"}, (name, status)


def test_every_operation_has_a_summary_and_an_id_of_its_own() -> None:
    ids = [described["operationId"] for _, described in OPERATIONS]
    assert len(ids) == len(set(ids))
    assert [name for name, described in OPERATIONS if not described.get("summary")] == []
