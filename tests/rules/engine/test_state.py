import json
import pickle

from rules.engine import BLANK, RuleState
from tests.rules.engine.scenario import T0, Scenario, rule


def test_an_empty_object_is_the_blank_state() -> None:
    assert RuleState.from_json({}) == BLANK


def test_a_number_that_postgres_writes_with_all_its_digits_stays_a_double() -> None:
    state = (
        Scenario(rule("fire: 'previous > 1.0'")).send(1e23).states["dsp-hot", "plant-7", "dsp.temperature"]
    )
    stored = state.to_json()
    stored["tracks"]["dsp.temperature"][0] = 10**23
    assert RuleState.from_json(stored).tracks["dsp.temperature"].value == 1e23


def test_the_clock_changes_a_stored_state_as_advance_does() -> None:
    """rules/engine/state.py describes it; the SQL is clock/sql/move_rule_states.sql."""
    scenario = Scenario(rule("above: 65", "for: 10m", "keep_firing_for: 5m")).send(70)
    pending = scenario.states["dsp-hot", "plant-7", "dsp.temperature"].to_json()
    opened = {**pending, "phase": "open", "last_opened_at": pending["due_at"], "due_at": None}
    assert scenario.at("10m").states["dsp-hot", "plant-7", "dsp.temperature"] == RuleState.from_json(opened)
    clearing = scenario.at("20m").send(60).states["dsp-hot", "plant-7", "dsp.temperature"].to_json()
    ended: dict[str, object] = {
        "phase": "ok",
        "alarm": None,
        "resolution": None,
        "due_at": None,
        "firing_series": {},
    }
    assert scenario.at("25m").states["dsp-hot", "plant-7", "dsp.temperature"] == RuleState.from_json(
        {**clearing, **ended}
    )


def test_a_state_can_be_sent_to_another_process() -> None:
    state = Scenario(rule("above: 65", "for: 10m")).send(70).states["dsp-hot", "plant-7", "dsp.temperature"]
    assert pickle.loads(pickle.dumps(state)) == state
    assert json.loads(json.dumps(state.to_json()))["alarm"]["since"] == T0.isoformat()
