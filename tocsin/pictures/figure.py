"""A picture as it stands on a page: the drawing, its legend, and the same data as a table below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from markupsafe import Markup

from tocsin.pictures.svg import element

MAX_ROWS = 500


def read_style() -> str:
    """The style sheet of the pictures, for a page that is one file."""
    return (files("tocsin.pictures") / "pictures.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Picture:
    """Templates print it: it is markup."""

    kind: str
    svg: Markup
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    legend: Sequence[tuple[str, str]] = ()
    """Class and name of what the drawing has."""
    more_rows: int = field(default=0)
    """Rows of the data that the table leaves out already."""

    def __html__(self) -> Markup:
        return element(
            "figure",
            element("div", self.svg, class_="pic-scroll", tabindex="0", role="group", aria_label=self.kind),
            *self._legend(),
            element("details", element("summary", "Table"), self.table, class_="pic-table"),
            class_=f"pic pic-{self.kind}",
        )

    __str__ = __html__

    def _legend(self) -> list[Markup]:
        if not self.legend:
            return []
        keys = [
            element("span", element("span", "", class_=f"pic-swatch {kind}"), name)
            for kind, name in self.legend
        ]
        return [element("figcaption", *keys, class_="pic-legend")]

    @property
    def table(self) -> Markup:
        head = element("tr", *(element("th", name, scope="col") for name in self.heads))
        body = [element("tr", *(element("td", cell) for cell in row)) for row in self.rows[:MAX_ROWS]]
        more = self.more_rows + max(len(self.rows) - MAX_ROWS, 0)
        parts = [element("table", element("thead", head), element("tbody", *body))]
        if more:
            parts.append(element("p", f"and {more:,} more"))
        return element("div", *parts, class_="pic-scroll", tabindex="0", role="group", aria_label="table")
