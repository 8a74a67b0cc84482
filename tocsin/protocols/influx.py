r"""The line protocol of InfluxDB: `cpu,host=web-1 usage=98.1,ok=t 1700000000000000000`.

Each field becomes a sample with the metric `<measurement>.<field>` and the tags as labels. Spaces,
commas and equals signs in names are escaped by a backslash; texts are in double quotes, in which `\"`
and `\\` are escaped. A line that is wrong is a problem with its number, and the others are used.
"""

from __future__ import annotations

import re
from math import isfinite

from schemas.wire.datapoint import Value
from tocsin.core.errors import InvalidInput
from tocsin.protocols.sample import MAX_SAMPLES, ReadSamples, Sample, instant_of

MAX_INFLUX_BYTES = 2 * 1024 * 1024
_MAX_LINE = 65_536
_MAX_SHOWN = 60
# Nanoseconds of one unit of `precision`.
PRECISIONS = {
    "n": 1,
    "ns": 1,
    "u": 1_000,
    "us": 1_000,
    "µ": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_ESCAPED = re.compile(r"\\([,= \\])")
_NAME = r"(?:[^,= \\\n]|\\.|\\$)+"
_MEASUREMENT = re.compile(r"(?:[^, \\\n]|\\.|\\$)+")
_TAG = re.compile(rf",({_NAME})=({_NAME})")
_FIELD = re.compile(rf'({_NAME})=("(?:[^"\\]|\\.|\\$)*"|[^", ]*)')
_INTEGER = re.compile(r"([+-]?[0-9]{1,20})([iu])")
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_BOOLEANS = dict.fromkeys(("t", "T", "true", "True", "TRUE"), True) | dict.fromkeys(
    ("f", "F", "false", "False", "FALSE"), False
)
_TIMESTAMP = re.compile(r"-?[0-9]{1,20}")


def read_lines(body: bytes, precision: str = "ns") -> ReadSamples:
    """The samples of a body. `InvalidInput` if it is too large, not UTF-8 or has an unknown
    precision."""
    if len(body) > MAX_INFLUX_BYTES:
        raise InvalidInput(f"the body has {len(body)} bytes", remedy=f"send at most {MAX_INFLUX_BYTES}")
    unit_ns = PRECISIONS.get(precision)
    if unit_ns is None:
        raise InvalidInput(f"the precision {precision[:20]!r} is not known", remedy="use ns, us, ms or s")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the body is not UTF-8 (at byte {error.start})", remedy="send UTF-8") from None
    read = ReadSamples()
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r").lstrip(" ")
        if not line or line.startswith("#"):
            continue
        _read_line(line, number, unit_ns, read)
        if len(read.samples) + len(read.problems) > MAX_SAMPLES:
            raise InvalidInput(f"the body has more than {MAX_SAMPLES} values", remedy="send fewer at once")
    return read


def _read_line(line: str, number: int, unit_ns: int, read: ReadSamples) -> None:
    try:
        if len(line) > _MAX_LINE:
            raise ValueError(f"it has {len(line)} characters: send at most {_MAX_LINE}")
        samples, problems = _samples(line, unit_ns)
        read.samples.extend(samples)
        read.problems.extend(f"line {number}: {problem}" for problem in problems)
    except ValueError as error:
        read.problems.append(f"line {number}: {error}")


def _samples(line: str, unit_ns: int) -> tuple[list[Sample], list[str]]:
    measurement, position = _take(_MEASUREMENT, line, 0, "a measurement")
    labels: dict[str, str] = {}
    while line[position : position + 1] == ",":
        found = _TAG.match(line, position)
        if found is None:
            raise ValueError(f"expected tag=value at {_near(line, position)}")
        labels[_plain(found[1])] = _plain(found[2])
        position = found.end()
    position = _spaces(line, position, "the fields")
    fields, position = _fields(line, position)
    rest = line[position:].strip(" ")
    if rest and not _TIMESTAMP.fullmatch(rest):
        raise ValueError(f"the timestamp {rest[:_MAX_SHOWN]!r} is not an integer")
    ts = instant_of(int(rest) * unit_ns // 1_000) if rest else None
    samples, problems = [], []
    for name, text in fields:
        try:
            metric = f"{_plain(measurement)}.{name}"
            samples.append(Sample(metric, labels, _value(name, text), ts))
        except ValueError as error:
            problems.append(str(error))
    return samples, problems


def _fields(line: str, position: int) -> tuple[list[tuple[str, str]], int]:
    fields = []
    while True:
        found = _FIELD.match(line, position)
        if found is None or not found[2]:
            raise ValueError(f"expected field=value at {_near(line, position)}")
        fields.append((_plain(found[1]), found[2]))
        position = found.end()
        if line[position : position + 1] != ",":
            if line[position : position + 1] not in ("", " "):
                raise ValueError(f"expected a space or a comma at {_near(line, position)}")
            return fields, position
        position += 1


def _value(name: str, text: str) -> Value:
    if text.startswith('"'):
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if integer := _INTEGER.fullmatch(text):
        return int(integer[1])
    if _NUMBER.fullmatch(text) and isfinite(number := float(text)):
        return number
    raise ValueError(
        f"the value {text[:_MAX_SHOWN]!r} of field {name[:_MAX_SHOWN]!r} is not a number, a boolean or a text"
    )


def _take(regex: re.Pattern[str], line: str, position: int, what: str) -> tuple[str, int]:
    found = regex.match(line, position)
    if found is None:
        raise ValueError(f"expected {what} at {_near(line, position)}")
    return found[0], found.end()


def _spaces(line: str, position: int, what: str) -> int:
    end = position
    while line[end : end + 1] == " ":
        end += 1
    if end == position or end == len(line):
        raise ValueError(f"expected a space and {what} at {_near(line, position)}")
    return end


def _near(line: str, position: int) -> str:
    return (
        f"column {position + 1} ({line[position : position + _MAX_SHOWN]!r})"
        if line[position:]
        else "the end"
    )


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
