"""Finds the words that docs/glossary.md replaces, in any text. `tests/test_tidy.py` applies it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.paths import ROOT

# Each word of the glossary, and its forms. A key such as `room.temperature` is sample data.
REPLACED_WORDS = {
    "verdict": r"verdicts?",
    "fate": r"fates?",
    "calm": r"calm",
    "hear": r"hearing|hears?|heard|unheard",
    "silent": r"silent(?:ly)?",
    "house": r"houses?",
    "room": r"rooms?(?![.\-\w/])",
    "standing": r"standings?",
    "judge": r"judg(?:e|es|ed|ing|ement|ements)",
    "edge": r"edges?",
    "complete until": r"complete\s+until",
    "anew": r"anew",
    "for ever": r"for\s+ever",
    "mend": r"mend(?:s|ed|ing)?",
    "whoever": r"whoever",
    "somebody": r"somebody",
    "nobody": r"nobody",
    "anybody": r"anybody",
}
_CAMEL_CASE = re.compile(r"([a-z])([A-Z])")
_FORMS = "|".join(f"(?P<{word.replace(' ', '_')}>{forms})" for word, forms in REPLACED_WORDS.items())
_REPLACED = re.compile(rf"(?<![A-Za-z])(?:{_FORMS})(?![A-Za-z])", re.IGNORECASE)


class ReplacedWord(NamedTuple):
    """A use of a replaced word. `entry` is the word as the glossary lists it."""

    line: int
    word: str
    entry: str


def find_replaced_words(text: str) -> Iterator[ReplacedWord]:
    """The replaced words of a text. The parts of camelCase and snake_case names are words."""
    words = _CAMEL_CASE.sub(r"\1 \2", text).replace("_", " ")
    for match in _REPLACED.finditer(words):
        line = words.count("\n", 0, match.start()) + 1
        yield ReplacedWord(line, match[0], str(match.lastgroup).replace("_", " "))


def read_replacements() -> dict[str, str]:
    """The last table of the glossary: each replaced word, and the words to write instead."""
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    table = glossary.rpartition("| instead of | write |")[2]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {word.partition(" (")[0]: instead for words, instead in rows for word in words.split(", ")}
