"""What is in a drawing: its elements, whether all of them lie in the box, and which texts it has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from tocsin.pictures.figure import Picture
from tocsin.pictures.svg import CHARACTER

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
# The width of half a stroke may lie outside.
_SLACK = 1.0
ALLOWED_ATTRIBUTES = {
    *("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "width", "height", "points", "d"),
    *("class", "text-anchor", "href", "viewBox", "role", "aria-label"),
}


class Drawn:
    def __init__(self, picture: Picture) -> None:
        self.root = ElementTree.fromstring(str(picture.svg))
        left, top, self.width, self.height = (float(text) for text in self.root.attrib["viewBox"].split())
        assert (left, top) == (0, 0)
        self.elements = list(self.root.iter())
        self.page = ElementTree.fromstring(f"<main>{picture}</main>")

    def outside(self) -> list[str]:
        """Every element with a place outside of the box, or with a number that is none."""
        found = []
        for element in self.elements:
            for x, y in _places(element):
                is_inside = -_SLACK <= x <= self.width + _SLACK and -_SLACK <= y <= self.height + _SLACK
                if not (math.isfinite(x) and math.isfinite(y) and is_inside):
                    found.append(ElementTree.tostring(element, encoding="unicode")[:200])
        return found

    def texts(self) -> list[str]:
        return [text for text in self.page.itertext() if text.strip()]

    def attributes(self) -> set[str]:
        return {name for element in self.elements for name in element.attrib}


def _places(element: ElementTree.Element) -> Iterator[tuple[float, float]]:
    of = {name: float(value) for name, value in element.attrib.items() if re.fullmatch(_NUMBER, value)}
    tag = element.tag.removeprefix(_NAMESPACE)
    if tag == "rect":
        assert of["width"] >= 0
        assert of["height"] >= 0
        yield from ((of["x"], of["y"]), (of["x"] + of["width"], of["y"] + of["height"]))
    elif tag == "line":
        yield from ((of["x1"], of["y1"]), (of["x2"], of["y2"]))
    elif tag == "circle":
        yield from ((of["cx"] - of["r"], of["cy"] - of["r"]), (of["cx"] + of["r"], of["cy"] + of["r"]))
    elif tag == "polygon":
        yield from _pairs(element.attrib["points"])
    elif tag == "path":
        yield from _path_places(element.attrib["d"])
    elif tag == "text":
        shown = "".join(text for text in [element.text, *(child.tail for child in element)] if text)
        width = len(shown) * CHARACTER
        begins = of["x"] - {"start": 0.0, "middle": width / 2, "end": width}[element.attrib["text-anchor"]]
        yield from ((begins, of["y"]), (begins + width, of["y"]))


def _pairs(text: str) -> Iterator[tuple[float, float]]:
    numbers = [float(one) for one in re.findall(_NUMBER, text)]
    yield from zip(numbers[::2], numbers[1::2], strict=True)


def _path_places(data: str) -> Iterator[tuple[float, float]]:
    x = y = 0.0
    for command, rest in re.findall(r"([MLHVCZ])([^MLHVCZ]*)", data):
        if command == "H":
            x = float(rest)
        elif command == "V":
            y = float(rest)
        elif command != "Z":
            for pair in _pairs(rest):
                yield pair
                x, y = pair
        yield x, y
    assert not re.search(r"[a-zA-Z]", re.sub(r"e[+-]?\d", "", re.sub("[MLHVCZ]", "", data))), data[:100]
