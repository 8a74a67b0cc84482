"""Uses a check that raises `InvalidInput` as a pydantic validator."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from tocsin.core.errors import InvalidInput

Value = TypeVar("Value")
Checked = TypeVar("Checked")


def pydantic_check(check: Callable[[Value], Checked]) -> Callable[[Value], Checked]:
    """`check` with a `ValueError` in place of `InvalidInput`: pydantic turns it into an error with
    a location."""

    @wraps(check)
    def validate(value: Value) -> Checked:
        try:
            return check(value)
        except InvalidInput as error:
            raise ValueError(str(error)) from None

    return validate
