"""Fills templates with data.

Guarantee: the result is text that can be stored and sent (no NUL, no lone surrogates), or JSON. The
data is not changed, and no value is read as a template. The same template and data give the same
result: no clock is read, `now` is data.

On failure: `InvalidInput` with the line of the error. Every exception that Python raises inside an
expression (a text compared with a number, a division by zero) is an error of the template.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rules.language.templates.budget import bounded_length, budget
from rules.language.templates.compile import Part, compiled, compiled_value, value_of
from rules.language.templates.environment import data_of_rendering
from rules.language.templates.values import as_json
from schemas.values.json_shape import check_json_shape
from tocsin.core.errors import InvalidInput

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_MAX_LINE_LENGTH = 60


def fill_text(template: str, data: Mapping[str, object]) -> str:
    return _render(template, data, "text")


def fill_html(template: str, data: Mapping[str, object]) -> str:
    """HTML: the values are escaped, the text of the template is not."""
    return _render(template, data, "html")


def fill_subject(template: str, data: Mapping[str, object]) -> str:
    """A NATS subject: each value becomes one token, so that no value can add a level or a
    wildcard."""
    return _render(template, data, "subject")


def fill(template: object, data: Mapping[str, object]) -> Any:
    """A JSON value with every text in it filled. A text that is one `{{ ... }}` becomes the value
    itself. All texts share one budget."""
    with budget():
        return _fill(template, data)


def _fill(template: object, data: Mapping[str, object]) -> Any:
    if isinstance(template, dict):
        return {key: _fill(member, data) for key, member in template.items()}
    if isinstance(template, list):
        return [_fill(member, data) for member in template]
    if not isinstance(template, str) or "{" not in template:
        return template
    with _named_errors(template, data):
        whole = compiled_value(template)
        if whole is not None:
            value = as_json(value_of(whole, dict(data)))
            check_json_shape(value, "the value")
            return value
    return fill_text(template, data)


def _render(template: str, data: Mapping[str, object], part: Part) -> str:
    length, pieces = 0, []
    with _named_errors(template, data):
        for piece in compiled(template, part).generate(dict(data)):
            length += len(piece)
            bounded_length(length)
            pieces.append(piece)
        text = "".join(pieces)
        if _UNSTORABLE.search(text):
            raise InvalidInput("it makes a text with NUL or a lone surrogate", remedy="leave them out")
    return text


@contextmanager
def _named_errors(template: str, data: Mapping[str, object]) -> Iterator[None]:
    token = data_of_rendering.set(data)
    try:
        with budget():
            yield
    except Exception as error:
        raise InvalidInput(
            f"the template {_failing_line(template, error)} cannot be filled: {error}"
        ) from None
    finally:
        data_of_rendering.reset(token)


def _failing_line(template: str, error: Exception) -> str:
    number, frame = 1, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == "<template>":
            number = frame.tb_lineno
        frame = frame.tb_next
    lines = template.split("\n")
    line = lines[min(number, len(lines)) - 1].strip()
    position = f" (line {number})" if len(lines) > 1 else ""
    shown = f"{line[:_MAX_LINE_LENGTH]}..." if len(line) > _MAX_LINE_LENGTH else repr(line)
    return f"{shown}{position}"
