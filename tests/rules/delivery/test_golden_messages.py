import pytest

from tests.rules.delivery.golden_files import GOLDEN, forms


@pytest.mark.parametrize("name", sorted(forms()))
def test_the_default_message_has_not_changed(name: str) -> None:
    assert forms()[name] == (GOLDEN / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(forms())
