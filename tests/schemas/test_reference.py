"""The reference pages have every key of the models."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.documents import DOCUMENT_KINDS
from schemas.reference import DIRECTORY, page_of, write_pages


@pytest.mark.parametrize("kind", sorted(DOCUMENT_KINDS))
def test_the_page_is_current(kind: str) -> None:
    page = DIRECTORY / f"{kind}.md"
    assert page.is_file(), "run `python -m schemas.export`"
    assert page.read_text(encoding="utf-8") == page_of(kind), "run `python -m schemas.export`"


def test_no_page_is_left_over() -> None:
    assert {path.name for path in DIRECTORY.iterdir()} == {f"{kind}.md" for kind in DOCUMENT_KINDS}


@pytest.mark.parametrize("kind", sorted(DOCUMENT_KINDS))
def test_every_key_of_every_part_is_there_with_its_meaning(kind: str) -> None:
    page = page_of(kind)
    schema = DOCUMENT_KINDS[kind].model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        for key, field in part.get("properties", {}).items():
            row = next(line for line in page.splitlines() if line.startswith(f"| `{key}` |"))
            assert row.count(" | ") >= 3
            assert "description" in field, f"{kind}: {key} has no description"


def test_a_row_says_type_default_and_example() -> None:
    page = page_of("schedule").splitlines()
    assert (
        "| `max_catch_up` | whole number | `100` | Largest number of fires for `catch_up: all`. Example: `100` |"
        in page
    )
    assert "| `enabled` | true or false | `true` | false pauses the schedule. |" in page
    (dst_gap,) = [line for line in page if line.startswith("| `dst_gap` |")]
    assert dst_gap.startswith("| `dst_gap` | `forward` or `skip` | `forward` |")
    (grace,) = [line for line in page if line.startswith("| `grace` |")]
    assert grace.startswith("| `grace` | duration |  |")
    assert any(line.startswith("| `name` | name | required |") for line in page)


def test_parts_are_named_by_the_keys_that_lead_to_them() -> None:
    page = page_of("channel")
    assert "| `smtp` | [email.smtp](#emailsmtp) | required |" in page
    assert "\n## email.smtp\n" in page


def test_writing_makes_a_page_for_each_kind(tmp_path: Path) -> None:
    assert {path.stem for path in write_pages(tmp_path / "reference")} == set(DOCUMENT_KINDS)
