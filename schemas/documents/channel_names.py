"""The `notify` key: names of channels, each at most once."""

from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.values.names import Name


def _check_distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"'{name}' is named twice: name each channel once")
    return names


Channels = Annotated[tuple[Name, ...], Field(strict=False, max_length=32), AfterValidator(_check_distinct)]
