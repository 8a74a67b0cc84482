"""Another distribution that claims one of our import names is rejected by name."""

from __future__ import annotations

import pytest

from tocsin.core.errors import Refused
from tocsin.core.import_names import IMPORT_NAMES, refuse_shadowed_names


def test_our_own_distribution_and_others_with_other_names_are_accepted() -> None:
    refuse_shadowed_names({**{name: ["tocsin"] for name in IMPORT_NAMES}, "yaml": ["PyYAML"]})


@pytest.mark.parametrize("name", IMPORT_NAMES)
def test_another_distribution_with_one_of_our_names_is_rejected(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        refuse_shadowed_names({name: ["Tocsin", "other-dist", "other-dist", "another"]})
    assert str(refusal.value) == (
        f"the import name {name!r} of tocsin is also claimed by 'another', 'other-dist': "
        "install tocsin into an environment of its own"
    )


def test_the_installed_distributions_are_accepted() -> None:
    refuse_shadowed_names()
