"""The key of a series: the key of its datapoints, with the labels that distinguish the series.

`cpu.temp{core="0"}` is the series of the key `cpu.temp` whose label `core` is `0`, if the
datapoint_type names `core` as a dimension. Without dimensions, both keys are the same.

Guarantee: a series has one key. Dimensions are in the order of the type, and one without a label is
left out. No two series of an owner have the same key: a key of a producer has no `{`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from schemas.values.key_pattern import MAX_TOKEN_BYTES
from schemas.wire.subjects import series_tokens

MAX_SERIES_KEY_LENGTH = 512
MAX_SERIES_KEY_BYTES = 1024
"""As UTF-8: an index of Postgres holds a series key, an owner and a rule."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def series_key(key: str, labels: Mapping[str, str], dimensions: Sequence[str]) -> str:
    """The key of the series that a datapoint belongs to. `ValueError` if it is too long."""
    if not dimensions or not labels:
        return key
    values = tuple((name, labels[name]) for name in dimensions if name in labels)
    return _joined(key, values) if values else key


def base_key(series_key: str) -> str:
    """The key of the datapoints of a series, which patterns, types and rules match."""
    return series_key.partition("{")[0]


@lru_cache(maxsize=200_000)
def _joined(key: str, values: tuple[tuple[str, str], ...]) -> str:
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in values)
    joined = f"{key}{{{inside}}}"
    if (
        len(joined) > MAX_SERIES_KEY_LENGTH
        or len(joined.encode()) > MAX_SERIES_KEY_BYTES
        or len(series_tokens(joined)) > MAX_TOKEN_BYTES
    ):
        raise ValueError(
            f"{joined[:80]}... is too long: a key and its dimensions have at most {MAX_SERIES_KEY_LENGTH} characters"
        )
    return joined
