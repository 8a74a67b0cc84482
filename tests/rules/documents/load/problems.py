"""The problems that the loader reports about a text."""

from __future__ import annotations

import pytest

from rules.documents.load import RulesInvalid, load_text


def problems_of(text: str, known: dict[str, frozenset[str]] | None = None) -> list[str]:
    with pytest.raises(RulesInvalid) as refused:
        load_text(text, file="r.yaml", known=known)
    return str(refused.value).split("\n")
