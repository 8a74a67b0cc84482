"""Licences are read from metadata in all of its forms, and copyleft is refused unless it is named."""

from __future__ import annotations

import pytest

from tests.supply import licences


@pytest.mark.parametrize(
    ("package", "licence"),
    [
        ("aiohttp", "Apache-2.0 AND MIT"),
        ("mdurl", "MIT"),
        ("pip-api", "Apache-2.0"),
        ("psycopg", "LGPL-3.0-only"),
    ],
)
def test_the_licence_is_found_in_each_form_of_metadata(package: str, licence: str) -> None:
    assert licences.find_licence(package) == licence


@pytest.mark.parametrize(
    ("package", "licence", "allowed"),
    [
        ("any", "MIT", True),
        ("any", "GPL-3.0-only", False),
        ("any", "LGPL-3.0-only", False),
        ("psycopg", "LGPL-3.0-only", True),
        ("psycopg", "GPL-3.0-only", False),
        ("any", "MIT OR GPL-3.0-only", True),
        ("any", "MIT AND GPL-3.0-only", False),
        ("any", "(MIT OR Apache-2.0)", True),
        ("any", "unknown", False),
    ],
)
def test_a_licence_is_allowed_for_all_or_named_for_one(package: str, licence: str, allowed: bool) -> None:
    assert licences.is_allowed(package, licence) is allowed


def test_every_locked_package_has_an_allowed_licence() -> None:
    assert list(licences.find_refused()) == []
