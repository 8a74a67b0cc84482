"""I5 for systems: a replay gives the recorded health and the alarms over it, whichever partition lagged."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rules.apply import systems as apply_systems
from rules.health import store, systems
from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import replayed
from tests.rules.replay.backtest.recorded_systems import RULES, Systems
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

MEMBER = st.tuples(st.booleans(), st.sampled_from(["key: dsp.a", "key: dsp.b", "type: load"]), st.booleans())
SYSTEM = st.lists(MEMBER, min_size=1, max_size=4, unique_by=lambda member: member[:2]).filter(
    lambda members: any(required for _, _, required in members)
)
DOCUMENTS = st.tuples(st.integers(0, len(RULES) - 1), SYSTEM, SYSTEM)
DATAPOINT = st.tuples(
    st.sampled_from([0, 0, 1, 3, 7, 14]), st.sampled_from([1.0, 50.0, 62.0, 71.0]), st.sampled_from("ab")
)
SEND = st.tuples(st.just("send"), st.tuples(st.booleans(), st.lists(DATAPOINT, min_size=1, max_size=4)))
STEPS = st.lists(
    st.one_of(
        SEND,
        SEND,
        SEND,
        st.tuples(st.just("wait"), st.booleans()),
        st.tuples(st.just("apply"), DOCUMENTS),
        st.tuples(st.sampled_from(["clock", "read calculated", "deliver"]), st.just(None)),
    ),
    min_size=4,
    max_size=14,
)
_examples = itertools.count(1)


@pytest.fixture
async def live(connection: Connection, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Systems:
    """An instance that shows only the worst of the members that are not ok."""
    for module in (store, systems):
        monkeypatch.setattr(module, "MAX_SHOWN_MEMBERS", 1)
    instance = Systems(connection, await sessions("clock"))
    await instance.begin()
    return instance


@settings(
    max_examples=15,
    phases=[Phase.generate],
)
@given(DOCUMENTS, STEPS)
async def test_health_is_replayed_as_it_was_whichever_partition_was_read_first(
    settings: Settings, connection: Connection, live: Systems, first: Any, steps: list[tuple[str, Any]]
) -> None:
    example = next(_examples)
    live.begin_example(example)
    await live.apply_only(live.documents(first), live.now[0])
    for what, argument in steps:
        await live.step(what, argument)
        # Usually too early: health that is recorded must never change afterwards.
        await live.decide()
    await live.settle()
    row = await one_row(connection, "select count(*) as count from tocsin.member_observation")
    assert row["count"] == 0, "everything is decided"
    header, result = await replayed(settings, at(0), at(max(live.now)))
    assert header.horizon("health", 0) >= at(max(live.now) - 50), "and compared"
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    row = await one_row(
        connection, "select count(*) as count from tocsin.datapoint_calculated where kind = 'health'"
    )
    assert result.health_count == row["count"]
    assert result.recorded_transitions == result.replayed_transitions


@pytest.mark.parametrize("clock_is_late", [False, True])
async def test_an_owner_that_becomes_a_member_again_has_its_current_alarms(
    settings: Settings, connection: Connection, live: Systems, clock_is_late: bool
) -> None:
    """Its alarm ended while it was not a member, or would have if the clock had not been late."""
    live.begin_example(next(_examples))
    far, near = (3, [(True, "key: dsp.a", True)]), (3, [(False, "key: dsp.a", True)])
    for what, argument in [
        ("apply", (*far, [])),
        ("send", (True, [(1, 71.0, "a")])),
        ("apply", (*near, [])),
        ("send", (True, [(1, 1.0, "a")])),
        ("wait", True),
        ("deliver" if clock_is_late else "clock", None),
        ("apply", (*far, [])),
    ]:
        await live.step(what, argument)
    await live.settle()
    rows = await all_rows(connection, "select payload from tocsin.datapoint_calculated where kind = 'health'")
    assert [row["payload"]["health"] for row in rows] == ["unknown", "outage", "unknown", "ok"]
    _, result = await replayed(settings, at(0), at(max(live.now)))
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert result.health_count == 4


async def test_a_sustain_that_fires_while_its_owner_becomes_a_member_is_counted_once(
    settings: Settings, connection: Connection, live: Systems, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock fires it after the apply has read the state of the owner, and before it writes the member."""
    live.begin_example(next(_examples))
    far, near = (1, [(True, "key: dsp.a", True)]), (1, [(False, "key: dsp.a", True)])
    await live.step("apply", (*near, []))
    await live.step("send", (True, [(1, 71.0, "a")]))
    await live.step("wait", True)
    replace_members = apply_systems._replace

    async def meanwhile(*arguments: Any) -> None:
        await live.run_clock(max(live.now))
        await replace_members(*arguments)

    monkeypatch.setattr(apply_systems, "_replace", meanwhile)
    await live.step("apply", (*far, []))
    fired = await one_row(connection, "select opened_at from tocsin.alarm where event_rule = 'hot'")
    assert fired["opened_at"] is not None, "the clock did not wait for the apply"
    await live.settle()
    rows = await all_rows(connection, "select payload from tocsin.datapoint_calculated where kind = 'health'")
    assert [row["payload"]["health"] for row in rows] == ["unknown", "outage"]
    _, result = await replayed(settings, at(0), at(max(live.now)))
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert result.health_count == 2
