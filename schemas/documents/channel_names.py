"""The `notify` key: names of channels, each at most once."""

from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.values.names import Name


def _check_channels(channels: tuple[str, ...]) -> tuple[str, ...]:
    for index, name in enumerate(channels):
        if name in channels[:index]:
            raise ValueError(f"'{name}' is named twice, remove one")
    return channels


Channels = Annotated[tuple[Name, ...], Field(strict=False, max_length=32), AfterValidator(_check_channels)]
