"""Ids as operators write them: complete, or their first characters."""

from __future__ import annotations

from uuid import UUID

import pytest

from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.id_prefix import IdPrefix

ID = UUID("5a0f7c64-3b1e-4a57-9f0e-2d6f7b1c8e43")


def prefix(text: str, noun: str = "alarm") -> IdPrefix:
    return IdPrefix(text, noun, "tocsin alarms")


@pytest.mark.parametrize("text", ["5a0f", "5A0F7C64", "5a0f7c64-3b1e", "5a0f7c64-", str(ID)])
def test_an_id_lies_between_the_bounds_of_its_prefixes(text: str) -> None:
    bounds = prefix(text).bounds()
    assert bounds["first"] <= ID <= bounds["last"]


def test_a_whole_id_has_itself_as_bounds() -> None:
    assert prefix(str(ID)).bounds() == {"first": ID, "last": ID}


@pytest.mark.parametrize("text", ["", "5a0", "%%%%", "not-an-id", f"{ID}0"])
def test_a_text_that_begins_no_id_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not the id of an alarm: give four characters of it or more"):
        prefix(text).bounds()


def test_one_row_is_returned_and_any_other_number_is_an_error() -> None:
    assert prefix("5a0f").only(["row"]) == "row"
    with pytest.raises(Refused, match=r"^there is no alarm '5a0f': `tocsin alarms` lists them$"):
        prefix("5a0f").only([])
    with pytest.raises(InvalidInput, match=r"^'5a0f' begins the ids of several runs: give more of it$"):
        prefix("5a0f", "run").only(["row", "other"])
