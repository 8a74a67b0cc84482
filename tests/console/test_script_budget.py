"""What a browser loads: little JavaScript outside of the editor, and no code that the policy would refuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import ROOT
from tocsin.console.static_files import static_files

MOST_BYTES = 60_000
STATIC = ROOT / "tocsin" / "console" / "static"
OWN = sorted((STATIC / "js").glob("*.js"))
ONLY_IN_THE_EDITOR = ("js/editor.js", "vendor/codemirror.")


def test_all_scripts_but_those_of_the_editor_are_small() -> None:
    sizes = {
        path: len(file.compressed)
        for path, file in static_files().items()
        if path.endswith(".js") and not path.startswith(ONLY_IN_THE_EDITOR)
    }
    assert sum(sizes.values()) <= MOST_BYTES, sizes


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_no_script_makes_markup_or_code_from_text(path: Path) -> None:
    assert (
        re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()
        )
        == []
    )
