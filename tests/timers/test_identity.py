"""Ids and offsets that every process derives alike."""

from __future__ import annotations

import uuid
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from timers.identity import event_id_text, spread_of

SCHEDULE = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def test_the_id_of_an_occurrence_never_changes() -> None:
    """A stored id must stay findable: a changed derivation would fire old occurrences under new names."""
    assert event_id_text(SCHEDULE, 1, "2026-03-02T08:00:00/0") == "3439812f227e5152be2ab9f1963b271f"


def test_schedule_generation_and_identity_each_make_another_id() -> None:
    ids = {
        event_id_text(schedule, generation, identity)
        for schedule in (SCHEDULE, str(uuid.UUID(int=1)))
        for generation in (1, 2, 11)
        for identity in ("2026-03-02T08:00:00/0", "2026-03-02T08:00:00/1", "2026-03-02T08:00:00Z")
    }
    assert len(ids) == 18


@given(st.uuids(), st.integers(1, 10**12), st.text(max_size=40))
def test_every_id_is_a_proper_version_5_uuid(schedule: uuid.UUID, generation: int, identity: str) -> None:
    identity = identity.encode(errors="replace").decode()
    made = uuid.UUID(event_id_text(str(schedule), generation, identity))
    assert (made.version, made.variant) == (5, uuid.RFC_4122)


@given(st.text(max_size=20), st.text(max_size=20), st.timedeltas(timedelta(0), timedelta(days=30)))
def test_a_share_of_the_spread_is_stable_and_shorter_than_it(
    owner: str, name: str, spread: timedelta
) -> None:
    owner, name = (text.encode(errors="replace").decode() for text in (owner, name))
    share = spread_of(owner, name, spread)
    assert share == spread_of(owner, name, spread)
    assert timedelta(0) <= share
    assert share < spread or spread == share == timedelta(0)


def test_a_thousand_schedules_are_spread_over_all_of_it() -> None:
    shares = sorted(spread_of("", f"job-{number}", timedelta(seconds=100)) for number in range(1000))
    for tenth in range(10):
        inside = [share for share in shares if tenth * 10 <= share.total_seconds() < tenth * 10 + 10]
        assert 60 <= len(inside) <= 140


def test_the_boundary_between_owner_and_name_changes_the_spread() -> None:
    spread = timedelta(days=1)
    assert spread_of("a", "bc", spread) != spread_of("ab", "c", spread)
