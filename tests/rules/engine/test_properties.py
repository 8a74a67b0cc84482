"""Properties of every rule and every sequence of inputs."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.engine import (
    BLANK,
    Arrival,
    Changed,
    Effect,
    EventSeen,
    Input,
    Open,
    Resolve,
    Rule,
    RuleState,
    WentStale,
    pass_time,
    step,
)
from schemas.values.duration import format_duration
from tests.rules.engine.oracle import Timing, expected_log
from tests.rules.engine.scenario import KEY, PLANT, T0, Scenario, rule

STALE_AFTER = timedelta(seconds=50)
TYPE = "datapoint_type: {name: t, key: '**', interval: 20s}\n"

seconds = st.integers(0, 120)
durations = st.sampled_from(["", "10s", "30s", "100s"])


@st.composite
def rules(draw: st.DrawFn) -> str:
    thresholds = ["above: 5", "above: {warning: 5, high: 6, critical: 8}"]
    fires = [*thresholds, "fire: 'value > 5.0 && freshness == \"fresh\"'", "fire: 'previous < value'"]
    line = draw(st.sampled_from([*fires, "rate_increase: 0.1", "absent: true"]))
    lines = [line]
    if line in thresholds:
        if draw(st.booleans()):
            reduce = draw(st.sampled_from(["avg", "max", "rate", "count"]))
            lines.append(f"window: {{over: 1m, reduce: {reduce}, min_count: {draw(st.integers(1, 3))}}}")
        elif draw(st.booleans()):
            lines.append("samples: {of: 3, at_least: 2}")
        no_data = draw(st.sampled_from(["keep", "alarm", "resolve"]))
        lines.append(f"no_data: {no_data}")
        if no_data != "keep" and (duration := draw(durations)):
            lines.append(f"no_data_for: {duration}")
    if draw(st.booleans()):
        lines.append("clear: 'value < 3.0'")
    for key in ("for", "keep_firing_for", "cooldown"):
        if duration := draw(durations):
            lines.append(f"{key}: {duration}")
    lines.append(f"per: {draw(st.sampled_from(['series', 'owner']))}")
    return TYPE + rule(*lines, datapoint="dsp.*")


@st.composite
def inputs(draw: st.DrawFn) -> list[Input]:
    """Arrivals of two series of one owner, and the deadlines that pass between them."""
    sequence: list[Input] = []
    last: dict[str, Arrival] = {}
    at = T0
    for wait in draw(st.lists(seconds, min_size=1, max_size=25)):
        at += timedelta(seconds=wait)
        sequence += _passed_deadlines(last, at)
        key = draw(st.sampled_from(["dsp.a", "dsp.b"]))
        last[key] = Arrival(at, 1, PLANT, key, draw(st.integers(0, 9)), T0, {})
        sequence.append(last[key])
    return sequence + _passed_deadlines(last, at + timedelta(hours=1))


def _passed_deadlines(last: dict[str, Arrival], until: datetime) -> list[Input]:
    due = sorted((one.at + STALE_AFTER, key) for key, one in last.items() if one.at + STALE_AFTER <= until)
    passed: list[Input] = []
    for deadline, key in due:
        one = last.pop(key)
        passed.append(WentStale(deadline, one.owner, key, one.at, one.value, one.ts, one.labels))
    return passed


def run(
    rule: Rule, sequence: list[Input], advances: list[datetime], *, is_stored: bool = False
) -> dict[str, list[Effect]]:
    """The effects by instance, if the shell also advances at some instants, and at the very end."""
    states: dict[str, RuleState] = {}
    effects: dict[str, list[Effect]] = {}

    def keep(instance: str, moved: tuple[RuleState, tuple[Effect, ...]]) -> None:
        state = moved[0]
        if is_stored:
            state = RuleState.from_json(json.loads(json.dumps(state.to_json())))
        states[instance] = state
        effects.setdefault(instance, []).extend(moved[1])

    def advance_all(until: datetime) -> None:
        for instance, state in list(states.items()):
            keep(instance, pass_time(rule, PLANT, state, until))

    waiting = sorted(advances)
    for input in sequence:
        while waiting and waiting[0] < input.at:
            advance_all(waiting.pop(0))
        instance = rule.instance_of(input)
        keep(instance, step(rule, states.get(instance, BLANK), input))
    for until in (*waiting, T0 + timedelta(days=2)):
        advance_all(until)
    return effects


instants = st.lists(st.integers(0, 4000).map(lambda second: T0 + timedelta(seconds=second)), max_size=40)


@given(rules(), inputs(), instants)
@settings(max_examples=150)
def test_when_and_how_often_a_shell_advances_changes_nothing(
    text: str, sequence: list[Input], advances: list[datetime]
) -> None:
    rule = Scenario(text).rule
    assert run(rule, sequence, advances) == run(rule, sequence, [])


@given(rules(), inputs())
@settings(max_examples=100)
def test_storing_the_state_and_reading_it_back_changes_nothing(text: str, sequence: list[Input]) -> None:
    rule = Scenario(text).rule
    assert run(rule, sequence, [], is_stored=True) == run(rule, sequence, [])


@given(rules(), inputs())
@settings(max_examples=100)
def test_an_alarm_opens_once_and_then_resolves_in_the_order_of_time(text: str, sequence: list[Input]) -> None:
    for of_instance in run(Scenario(text).rule, sequence, []).values():
        effects = [effect for effect in of_instance if isinstance(effect, Open | Resolve)]
        assert [type(effect) for effect in effects] == [Open, Resolve] * (len(effects) // 2) + [Open] * (
            len(effects) % 2
        )
        assert [effect.at for effect in effects] == sorted(effect.at for effect in effects)
        opened = [effect.alarm.id for effect in effects if isinstance(effect, Open)]
        assert opened[: len(effects) // 2] == [
            effect.alarm.id for effect in effects if isinstance(effect, Resolve)
        ]
        assert len(set(opened)) == len(opened)


@given(
    rules(), st.lists(st.tuples(seconds, st.sampled_from(["dsp.a", "dsp.b"]), st.integers(0, 9)), max_size=25)
)
@settings(max_examples=100)
def test_a_shell_can_carry_out_every_effect_and_never_has_two_sustains_of_one_alarm(
    text: str, sent: list[tuple[int, str, int]]
) -> None:
    scenario = Scenario(text, is_stored=True)
    for wait, key, value in sent:
        scenario.wait_until(scenario.now + timedelta(seconds=wait)).send(value, key)
        instances = 2 if scenario.rule.is_per_series else 1
        assert len(scenario.timers) <= instances
        assert sum(state != "resolved" for state in scenario.alarms.values()) <= instances
    scenario.wait_until(scenario.now + timedelta(days=1))
    assert scenario.timers == {}


@given(
    st.lists(st.tuples(seconds, st.integers(0, 9)), max_size=20),
    st.tuples(*(st.sampled_from([0, 7, 30, 100]),) * 3).map(lambda three: Timing(*three)),
    st.sampled_from([3, 5]),
    st.booleans(),
)
@settings(max_examples=150)
def test_the_engine_agrees_with_the_semantics_written_second_by_second(
    waits: list[tuple[int, int]], timing: Timing, clear: int, is_lazy: bool
) -> None:
    lines = ["above: 5", f"clear: 'value <= {clear}.0'"] if clear != 5 else ["above: 5"]
    for key, length_s in zip(("for", "keep_firing_for", "cooldown"), timing, strict=True):
        if length_s:
            lines.append(f"{key}: {format_duration(timedelta(seconds=length_s))}")
    scenario, second, arrivals = Scenario(rule(*lines), is_lazy=is_lazy), 0, []
    for wait, value in waits:
        second += wait
        arrivals.append((second, float(value)))
        scenario.wait_until(T0 + timedelta(seconds=second)).send(value)
    scenario.is_lazy = False
    scenario.wait_until(T0 + timedelta(seconds=second + 300))
    log = [
        f"{int((effect.at - T0).total_seconds())} {_transition(effect)}" for effect in scenario.transitions()
    ]
    assert log == expected_log(arrivals, timing, 5, clear, second + 300)


def _transition(effect: Open | Changed | Resolve) -> str:
    return {Open: "opened", Changed: "changed", Resolve: "resolved"}[type(effect)]


@st.composite
def event_rules(draw: st.DrawFn) -> str:
    lines = ["fire: 'type == \"link-down\"'", f"severity: {draw(st.sampled_from(['event', 'high']))}"]
    if draw(st.booleans()):
        lines += ["count: 3", "over: 2m"]
    elif duration := draw(durations):
        lines.append(f"for: {duration}")
    if draw(st.booleans()):
        lines.append("clear: 'type == \"link-up\"'")
    if draw(st.booleans()):
        lines.append("per: [payload.port]")
    for key in ("keep_firing_for", "cooldown"):
        if duration := draw(durations):
            lines.append(f"{key}: {duration}")
    return "event_rule:\n  name: link\n  event: link-*\n" + "".join(f"  {line}\n" for line in lines)


@st.composite
def events(draw: st.DrawFn) -> list[Input]:
    sequence: list[Input] = []
    at = T0
    for number, wait in enumerate(draw(st.lists(seconds, min_size=1, max_size=25))):
        at += timedelta(seconds=wait)
        facts = {
            "id": str(uuid.UUID(int=number)),
            "type": draw(st.sampled_from(["link-down", "link-down", "link-down", "link-up", "link-noise"])),
            "owner": PLANT,
            "severity": draw(st.integers(0, 6)),
            "payload": {"port": draw(st.sampled_from([1, 1.0, "eth0"]))},
        }
        sequence.append(EventSeen(at, facts))
    return sequence


@given(event_rules(), events(), instants)
@settings(max_examples=150)
def test_alarms_over_events_depend_on_events_alone(
    text: str, sequence: list[Input], advances: list[datetime]
) -> None:
    rule = Scenario(text).rule
    expected = run(rule, sequence, [])
    assert run(rule, sequence, advances) == expected
    assert run(rule, sequence, advances, is_stored=True) == expected
    for effects in expected.values():
        transitions = [effect for effect in effects if isinstance(effect, Open | Changed | Resolve)]
        assert [effect.at for effect in transitions] == sorted(effect.at for effect in transitions)
        is_open = False
        for effect in transitions:
            assert is_open is not isinstance(effect, Open)
            is_open = not isinstance(effect, Resolve)


def test_the_key_of_the_scenarios_is_one_of_the_pattern() -> None:
    assert Scenario(TYPE + rule("above: 5", datapoint="dsp.*")).rule.covers(KEY)
