"""All pictures on one page, to look at: `python -m tests.pictures.contact_sheet FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.paths import ROOT
from tests.pictures.samples import samples

_PAGE = """
body { margin: 1.5rem; font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif;
  background: var(--pic-paper); color: var(--pic-ink); }
h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
"""


def contact_sheet(theme: str) -> str:
    style = (ROOT / "tocsin" / "pictures" / "pictures.css").read_text(encoding="utf-8")
    pictures = "".join(f"<h2>{name}</h2>{picture}" for name, picture in samples().items())
    return (
        f'<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">'
        f"<title>Pictures</title><style>{style}{_PAGE}</style><main><h1>Pictures</h1>{pictures}</main></html>"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(
        contact_sheet(sys.argv[2] if len(sys.argv) > 2 else "light"), encoding="utf-8"
    )
