import pytest

from schemas.values.severities import level, level_name, levels, severities
from tocsin.core.errors import InvalidInput


def test_the_levels_rise_from_one() -> None:
    assert list(severities()) == ["info", "warning", "average", "high", "critical", "disaster"]
    assert [level(name) for name in severities()] == [1, 2, 3, 4, 5, 6]


def test_an_unknown_level_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidInput, match="unknown severity 'hihg', did you mean 'high'"):
        level("hihg")


def test_a_number_that_no_level_has_is_shown_as_it_is() -> None:
    assert [level_name(4), level_name(9)] == ["high", "9"]


def test_levels_are_a_setting() -> None:
    assert dict(levels("p3, p2,p1")) == {"p3": 1, "p2": 2, "p1": 3}


@pytest.mark.parametrize("text", ["", "a,,b", "a,a", "High", "value", "true", "severity", "in", "1st", "a-b"])
def test_a_level_that_could_not_be_written_in_a_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"TOCSIN_SEVERITIES=.* cannot name a level"):
        levels(text)
