"""The Jinja environment of templates: Jinja's immutable sandbox, restricted further.

Guarantee: `a.b` and `a["b"]` look up data (mappings, lists, texts), never attributes of Python
objects. A key `items` or `__class__` in a payload is therefore plain data. Arithmetic works on
numbers, and `-` also on instants. `+` and `~` also join texts, up to the length that the budget
allows. A missing value is an error that names its path.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any

from jinja2 import StrictUndefined, Undefined, pass_context
from jinja2.lexer import Lexer
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from rules.language.templates.budget import bounded_length, bounded_range, spend
from rules.language.templates.filters import FILTERS, TESTS, within_64_bits
from rules.language.templates.lexer import PositionLexer
from rules.language.templates.values import as_text
from tocsin.core.errors import InvalidInput

# Filters that the compiler adds to each loop and each `~`. Templates cannot name them.
COUNT_PASSES = "_count_passes"
CHECK_LENGTH = "_check_length"
_LOOP_FIELDS = frozenset(
    ("index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem")
)

data_of_rendering: ContextVar[Mapping[str, object]] = ContextVar("data of the rendering")


class MissingValue(StrictUndefined):
    """A missing value: usable with `default` and `is defined`, an error everywhere else."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        parent, name = self._undefined_obj, str(self._undefined_name)
        if isinstance(parent, Mapping | list):
            name = ".".join(filter(None, (_path_of(data_of_rendering.get({}), parent), name)))
        elif parent is not missing:
            return f"{as_text(parent)[:40]!r} has no part '{name}'"
        return f"there is no '{name}': write {{{{ {name} | default('-') }}}} if it may be missing"


class Sandbox(ImmutableSandboxedEnvironment):
    """`html` escapes filled values for HTML. `encode` converts the text of each filled value."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%"))

    def __init__(self, *, html: bool = False, encode: Callable[[str], str] | None = None) -> None:
        super().__init__(
            undefined=MissingValue,
            autoescape=html,
            finalize=_finalize if encode is None else _finalize_with(encode),
            optimized=False,  # constants are evaluated while the budget runs, not during compilation
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            cache_size=0,
        )
        self.globals.clear()
        self.globals["range"] = bounded_range
        self.filters = {**FILTERS, COUNT_PASSES: _count_passes, CHECK_LENGTH: _check_length}
        self.tests = TESTS
        self._lexer = PositionLexer(self)

    @property
    def lexer(self) -> Lexer:
        return self._lexer

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, LoopContext):
            return getattr(obj, attribute) if attribute in _LOOP_FIELDS else self.undefined(name=attribute)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj  # the message names the first missing part of a path
        if isinstance(obj, Mapping):
            return obj[argument] if argument in obj else self.undefined(obj=obj, name=argument)
        if isinstance(obj, list | tuple | str) and isinstance(argument, int):
            return (
                obj[argument]
                if -len(obj) <= argument < len(obj)
                else self.undefined(obj=obj, name=str(argument))
            )
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            as_text(left), as_text(right)  # raises with the path of the missing value
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            bounded_length(len(left) + len(right))
            return left + right
        if operator == "-" and isinstance(left, datetime) and isinstance(right, datetime | timedelta):
            return left - right
        for operand in (left, right):
            if not isinstance(operand, int | float):
                raise InvalidInput(
                    f"'{operator}' needs numbers, not {as_text(operand)[:40]!r}: texts are joined with '~'"
                )
        return within_64_bits(super().call_binop(context, operator, left, right))


@pass_context
def _finalize(_: Context, value: object) -> str:
    # `pass_context` also keeps Jinja from evaluating constants during compilation.
    return as_text(value)


def _finalize_with(encode: Callable[[str], str]) -> Callable[..., str]:
    @pass_context
    def finalize(_: Context, value: object) -> str:
        return encode(as_text(value))

    return finalize


def _count_passes(values: Iterable[object]) -> Iterator[object]:
    """Charge each pass of a `for` loop to the budget."""
    for value in values:
        spend()
        yield value


def _check_length(text: str) -> str:
    bounded_length(len(text))
    return text


def _path_of(data: Mapping[str, object], wanted: object) -> str:
    """The path of an object in the data, for an error message."""
    pending: deque[tuple[str, object]] = deque((str(key), value) for key, value in data.items())
    while pending:
        path, value = pending.popleft()
        if value is wanted:
            return path
        if isinstance(value, Mapping):
            pending += [(f"{path}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            pending += [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    return ""
