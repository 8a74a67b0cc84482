"""The public holidays of a country, by the library `holidays` (extra `import`).

Guarantee: the result is dates, so a document made of them means the same on every machine and at every
time. The library is asked once, when the document is written: another version of it changes no schedule.

On failure: `InvalidInput` for an unknown country, region or category, with those that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from tocsin.core.errors import InvalidInput
from tocsin.core.extras import install_remedy
from tocsin.core.near_name import near_name


class CountryHolidays(NamedTuple):
    days: dict[date, str]
    """In order, with their names."""
    version: str
    """Of the library."""


def country_holidays(
    country: str, region: str | None, first: int, last: int, categories: Sequence[str] = ("public",)
) -> CountryHolidays:
    library = _library()
    code = country.upper()
    regions: dict[str, list[str]] = library.list_supported_countries()
    if code not in regions:
        raise InvalidInput(
            f"no holidays of country {country[:40]!r} are known",
            remedy=f"write a code of ISO 3166-1 with two letters; {len(regions)} are known, such as US, GB or DE",
        )
    if region is not None and region not in regions[code]:
        near = near_name(region, regions[code]) or ", ".join(regions[code]) or "none"
        raise InvalidInput(f"{code} has no region {region[:40]!r}", remedy=f"known: {near}")
    known = library.country_holidays(code).supported_categories
    unknown = sorted(set(categories) - set(known))
    if unknown:
        raise InvalidInput(
            f"{code} has no holidays of category {unknown[0][:40]!r}", remedy=f"known: {', '.join(known)}"
        )
    found = library.country_holidays(
        code, subdiv=region, years=range(first, last + 1), categories=tuple(categories), language="en_US"
    )
    days = {day: str(name) for day, name in sorted(found.items()) if first <= day.year <= last}
    return CountryHolidays(days, str(library.__version__))


def _library() -> Any:
    try:
        import holidays
    except ImportError:
        raise InvalidInput(
            "the holidays of a country need the python package 'holidays'", remedy=install_remedy("import")
        ) from None
    return holidays
