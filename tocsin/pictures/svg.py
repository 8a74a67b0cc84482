"""SVG elements as safe markup: every text is escaped, every number is finite and short."""

from __future__ import annotations

import math
import re

from markupsafe import Markup, escape

CHARACTER = 6.3
"""Width of a character in the font of the pictures, on average and at most by little."""


def number(value: float) -> str:
    """A coordinate with one decimal. `ValueError` for one that is not finite."""
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is no coordinate")
    return f"{round(value, 1):g}"


# What XML cannot have, and what would turn the text around it.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def escaped(content: str) -> Markup:
    """Text as markup, if it is not markup already. A character that cannot be shown becomes a space."""
    return content if isinstance(content, Markup) else escape(_UNPRINTABLE.sub(" ", content))


def element(name: str, *children: str | Markup, **attributes: str | float | None) -> Markup:
    """`element("rect", x=1, class_="bar")`; an attribute that is None is left out."""
    # Not Markup.format: it takes ten times as long, and a page has thousands of elements.
    start = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not children:
        return Markup(f"<{name}{start}/>")  # noqa: S704 - each part is escaped
    return Markup(f"<{name}{start}>{''.join(map(escaped, children))}</{name}>")  # noqa: S704


def rect(
    x: float, y: float, width: float, height: float, kind: str, hint: str = "", *, rx: float | None = 2
) -> Markup:
    """A rectangle; `hint` is shown where a pointer rests on it."""
    children = [element("title", hint)] if hint else []
    return element(
        "rect", *children, x=x, y=y, width=max(width, 0), height=max(height, 0), rx=rx, class_=kind
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def text(
    x: float, y: float, content: str, kind: str = "", *, anchor: str = "start", within: float = math.inf
) -> Markup:
    """A text that takes at most `within`; a longer one is cut, and shown whole where a pointer rests on it."""
    shown = shorten(content, within)
    children = [shown] if shown == content else [element("title", content), shown]
    return element("text", *children, x=x, y=y, class_=kind or None, text_anchor=anchor)


def shorten(content: str, within: float) -> str:
    """The text, or its beginning with an ellipsis, in a width."""
    content = "".join(character if character.isprintable() else " " for character in content)
    if len(content) * CHARACTER <= within:
        return content
    most = int(within / CHARACTER)
    return f"{content[: most - 1]}…" if most >= 2 else ""


def path(points: list[tuple[float, float]]) -> str:
    """The data of an open line through the points."""
    return " ".join(f"{'L' if index else 'M'}{number(x)} {number(y)}" for index, (x, y) in enumerate(points))


def drawing(
    width: float, height: float, parts: list[Markup], *, title: str, description: str, has_links: bool = False
) -> Markup:
    """The whole SVG. One with links is a group, because an image has no parts for a screen reader."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *parts,
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        class_="pic-svg",
        role="group" if has_links else "img",
        aria_label=title,
    )
