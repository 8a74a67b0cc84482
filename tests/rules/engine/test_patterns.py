from hypothesis import given
from hypothesis import strategies as st

from rules.engine.patterns import PatternIndex
from rules.engine.types import TypeIndex
from schemas.documents import DatapointTypeDocument
from schemas.values.key_pattern import covers
from tests.schemas.values.key_strategies import keys, patterns


@given(st.lists(patterns, max_size=8), keys)
def test_the_index_finds_what_comparing_every_pattern_finds(known: list[str], key: str) -> None:
    index = PatternIndex((pattern, place) for place, pattern in enumerate(known))
    assert list(index.find(key)) == [place for place, pattern in enumerate(known) if covers(pattern, key)]


def types(*of: tuple[str, str]) -> TypeIndex:
    return TypeIndex(
        DatapointTypeDocument.model_validate({"name": f"t{place}", "key": key, "value": value})
        for place, (key, value) in enumerate(of)
    )


def test_the_most_specific_type_is_used_in_any_order() -> None:
    of = [("dsp.**", "string"), ("dsp.*", "bool"), ("dsp.a", "number")]
    for order in (of, of[::-1]):
        index = types(*order)
        found = [index.of(key) for key in ("dsp.a", "dsp.b", "dsp.b.c")]
        assert [one.value for one in found if one] == ["number", "bool", "string"]
        assert index.of("dsp") is None


def test_a_pattern_has_a_kind_only_if_all_its_types_agree() -> None:
    index = types(("dsp.a", "number"), ("dsp.b", "number"), ("x.*", "bool"), ("x.y", "string"))
    kinds = [index.kind(pattern) for pattern in ("dsp.*", "dsp.a", "**", "x.*", "x.y", "x.z", "none")]
    assert kinds == ["number", "number", None, None, "string", "bool", None]
