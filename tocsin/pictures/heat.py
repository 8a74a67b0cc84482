"""Pages per day by threshold and `for`, as a heat map: where a rule would page how often."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from tocsin.pictures.figure import Picture
from tocsin.pictures.number_text import value_text
from tocsin.pictures.svg import drawing, rect, text

MOST_COLUMNS = 15
MOST_ROWS = 10
_LEFT = 78.0
_TOP = 34.0
_WIDTH = 54.0
_HEIGHT = 30.0
_LEVELS = 4


def heat_map(
    columns: Sequence[str],
    rows: Sequence[str],
    pages: Sequence[Sequence[float]],
    *,
    title: str,
    column_name: str,
    row_name: str,
    current: tuple[int, int] | None = None,
) -> Picture:
    """`pages[row][column]` is pages per day; `current` the row and column of the rule as it is."""
    columns, rows = columns[:MOST_COLUMNS], rows[:MOST_ROWS]
    busiest = max((value for line in pages for value in line), default=0.0)
    width = max(_LEFT + max(len(columns), 1) * _WIDTH + 4, 240)
    parts = [
        text(_LEFT, 12, column_name, "pic-quiet", within=width - _LEFT),
        text(0, _TOP - 8, row_name, "pic-quiet", within=_LEFT),
    ]
    for place, name in enumerate(columns):
        x = _LEFT + place * _WIDTH + _WIDTH / 2
        parts.append(text(x, _TOP - 6, name, "pic-tick", anchor="middle", within=_WIDTH - 4))
    for row, name in enumerate(rows):
        y = _TOP + row * _HEIGHT
        parts.append(text(_LEFT - 8, y + _HEIGHT / 2 + 4, name, "pic-tick", anchor="end", within=_LEFT - 8))
        for column, column_text in enumerate(columns):
            hint = f"{column_text}, for {name}: {pages[row][column]:.3g} pages a day"
            parts += _cell(row, column, pages[row][column], busiest, hint, (row, column) == current)
    height = _TOP + max(len(rows), 1) * _HEIGHT + 4
    svg = drawing(width, height, parts, title=title, description=f"at most {busiest:.3g} pages a day")
    table = [
        (name, *(f"{value:.3g}" for value in values[: len(columns)]))
        for name, values in zip(rows, pages, strict=False)
    ]
    legend = (("lv1", "few"), ("lv4", "many"), ("current", "as it is"))
    return Picture("heat", svg, (f"{row_name} \\ {column_name}", *columns), table, legend)


def _cell(row: int, column: int, value: float, busiest: float, hint: str, is_current: bool) -> list[Markup]:
    x, y = _LEFT + column * _WIDTH, _TOP + row * _HEIGHT
    level = heat_level(value, busiest)
    kind = f"pic-heat lv{level}{' current' if is_current else ''}"
    inset = 2 if is_current else 1
    box = rect(x + inset, y + inset, _WIDTH - 2 * inset, _HEIGHT - 2 * inset, kind, hint, rx=3)
    shown = "0" if value == 0 else value_text(round(value, 2) or value)
    name = text(
        x + _WIDTH / 2, y + _HEIGHT / 2 + 4, shown, f"pic-cell lv{level}", anchor="middle", within=_WIDTH - 2
    )
    return [box, name]


def heat_level(value: float, busiest: float) -> int:
    """0 for none, and 1 to 4 on a scale of square roots: few and fewer are told apart."""
    if value <= 0 or busiest <= 0:
        return 0
    return min(1 + int((value / busiest) ** 0.5 * _LEVELS), _LEVELS)
