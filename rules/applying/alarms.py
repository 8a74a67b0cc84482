"""What a change of the rules does to the alarms that hold: the one place that decides it.

Guarantee: a state whose conditions and timing stay as they are is left alone. Where they change, an open alarm is kept
until the new rule clears it, and everything else is judged anew from the next input. Where the rule is removed or
disabled, or no longer covers any series of the alarm, an open alarm is resolved with the reason and a pending one
never was; their timers go with them. Nothing is left that no rule would ever end.

Deadlines that were decided (`complete_until` of the partition) are realised first, at their nominal time. So
verdicts do not depend on how late the clock was, and a replay that calls `switch` at the same place of the
stream (`rules/applying/switches.py`) comes to the same alarms.

In the record lane records are judged by the rules of their seq, which may be older than the apply: whoever drains that
lane does the same (`change_alarms`, for lane `record`) when it passes the `rules-applied` event.

Only the clock changes states while an apply holds the partitions. It removes the timer first, as we do, so a fire
that was quicker shows as another version of the state; then everything is read and decided again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb
from pydantic import BaseModel, ValidationError

from clock.record_log import NewEvent
from rules.applying.plan import Key, Plan, Stored
from rules.engine import (
    CancelSustain,
    CompiledRules,
    DropPending,
    Effects,
    Open,
    Resolve,
    Rule,
    RuleState,
    TypeIndex,
    adopt,
    advance,
    compile_rule,
    edge_event_id,
    end,
)
from schemas.documents import KINDS, DatapointTypeDocument, EventRuleDocument
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput, Refused

_TURNS = 20
_OF_ALARMS = ("event_rule", "datapoint_type")
Complete = Mapping[tuple[str, int], datetime | None]
"""`complete_until` by lane and partition."""


class Fate(NamedTuple):
    """What becomes of the states of a rule: they go on under `rule`, or they end."""

    rule: Rule | None
    reason: str = "rule-changed"
    why: str = "the rule was changed"


class Held(NamedTuple):
    """A state with an alarm, as rules/read_held_states returns it."""

    event_rule: str
    owner: str
    lane: str
    partition: int
    version: int
    stored: dict[str, Any]
    correlation_id: uuid.UUID

    @property
    def state(self) -> RuleState:
        return RuleState.from_json(self.stored)


class Switched(NamedTuple):
    held: Held
    state: RuleState
    effects: Effects


def compile_alarm_rules(documents: Iterable[object], *, leave_out_unusable: bool = False) -> CompiledRules:
    """Of all documents that hold together. One that cannot be used is refused, or left out."""
    documents = list(documents)
    types = TypeIndex(one for one in documents if isinstance(one, DatapointTypeDocument))
    rules = []
    for one in documents:
        if not isinstance(one, EventRuleDocument):
            continue
        try:
            rules.append(compile_rule(one, types))
        except InvalidInput as error:
            if not leave_out_unusable:
                raise Refused(
                    f"event_rule {one.name!r}, which is applied already, would not hold any more ({error}): "
                    "change it in the same apply"
                ) from None
    return CompiledRules(rules, types)


def fates(before: CompiledRules, after: CompiledRules, disabled: Iterable[str] = ()) -> dict[str, Fate]:
    """By the name of every rule whose states do not simply go on."""
    found: dict[str, Fate] = {}
    for name, rule in before.rules.items():
        following = after.rules.get(name)
        if following is None and name in disabled:
            found[name] = Fate(None, "rule-disabled", "the rule was disabled")
        elif following is None:
            found[name] = Fate(None, "rule-removed", "the rule was removed")
        elif _lane(rule) != _lane(following):
            found[name] = Fate(None)
        elif rule.fingerprint != following.fingerprint:
            found[name] = Fate(following)
    return found


def planned_fates(stored: Sequence[Stored], planned: Plan) -> dict[str, Fate]:
    """What becomes of the states of every event_rule, and of those that a datapoint_type stands for."""
    if not any(change.kind in _OF_ALARMS for change in planned.effective):
        return {}
    before = {(one.kind, one.name): one.document for one in stored if one.holds}
    after: dict[Key, Any] = {**before, **{change.key: change.after for change in planned.effective}}
    disabled = [
        change.name
        for change in planned.of_kind("event_rule")
        if change.after is not None and not change.after["enabled"]
    ]
    return fates(
        compile_alarm_rules(_models(before.items()), leave_out_unusable=True),
        compile_alarm_rules(_models(after.items())),
        disabled,
    )


def _models(documents: Iterable[tuple[Key, Any]]) -> Iterable[BaseModel]:
    for (kind, _), document in documents:
        if kind in _OF_ALARMS and document is not None:
            # One that this version of Tocsin cannot read is set aside by the workers, too.
            with suppress(ValidationError):
                yield KINDS[kind].model_validate(document)


def switch(
    state: RuleState, fate: Fate, complete_until: datetime | None, at: datetime
) -> tuple[RuleState, Effects]:
    """Pure: a state at the moment when the rules change."""
    effects: Effects = ()
    if complete_until is not None:
        state, effects = advance(state, complete_until)
    # Arrivals are on another clock than applies, and no alarm ends before it opened.
    at = max(at, state.last_opened_at or at)
    if fate.rule is None:
        state, more = end(state, at, fate.reason, fate.why)
    else:
        state, more = adopt(fate.rule, state, at)
    return state, effects + more


async def foresee_alarms(
    connection: Connection, decided: Mapping[str, Fate], complete: Complete, at: datetime
) -> list[Switched]:
    """What `change_alarms` would do now; reads only."""
    rows = await (
        await connection.execute(statement("rules.applying/read_held_states"), {"rules": sorted(decided)})
    ).fetchall()
    found = []
    for held in (Held(*row) for row in rows):
        until = complete.get((held.lane, held.partition))
        found.append(Switched(held, *switch(held.state, decided[held.event_rule], until, at)))
    return found


async def change_alarms(
    connection: Connection, decided: Mapping[str, Fate], complete: Complete, at: datetime
) -> list[NewEvent]:
    """Phases 1 and 2, in the caller's transaction, which holds the partitions; the events are left to append."""
    if not decided:
        return []
    for _ in range(_TURNS):
        switched = await foresee_alarms(connection, decided, complete, at)
        async with connection.transaction() as savepoint:
            await _disarm(connection, switched)
            if await _lock(connection, switched):
                ended = sorted(name for name, fate in decided.items() if fate.rule is None)
                await _write(connection, switched, ended)
                return [event for one in switched for event in _events(one)]
            savepoint.force_rollback = True
    raise Refused("alarms open and resolve faster than the rules can be changed: try again")


def _lane(rule: Rule) -> str:
    return "data" if rule.document.event is None else "record"


async def _disarm(connection: Connection, switched: Sequence[Switched]) -> None:
    cancelled: list[tuple[uuid.UUID, str]] = []
    for effect in (effect for one in switched for effect in one.effects):
        if isinstance(effect, CancelSustain):
            cancelled.append((effect.alarm_id, effect.key))
        elif isinstance(effect, Resolve):
            cancelled.append((effect.alarm.id, "snooze"))
    await connection.execute(
        statement("rules.applying/disarm_sustains"),
        {"refs": [str(alarm) for alarm, _ in cancelled], "keys": [key for _, key in cancelled]},
    )


async def _lock(connection: Connection, switched: Sequence[Switched]) -> bool:
    """False if a state is no longer the one that was read."""
    row = await (
        await connection.execute(
            statement("rules.applying/lock_states"),
            {
                "rules": [one.held.event_rule for one in switched],
                "owners": [one.held.owner for one in switched],
                "versions": [one.held.version for one in switched],
            },
        )
    ).fetchone()
    return row is not None and row[0] == len(switched)


async def _write(connection: Connection, switched: Sequence[Switched], ended: Sequence[str]) -> None:
    await connection.execute(statement("rules.applying/delete_states"), {"rules": ended})
    kept = [one for one in switched if one.held.event_rule not in ended]
    await connection.execute(
        statement("rules.applying/update_states"),
        {
            "rules": [one.held.event_rule for one in kept],
            "owners": [one.held.owner for one in kept],
            "phases": [one.state.phase for one in kept],
            "alarm_ids": [one.state.alarm and one.state.alarm.id for one in kept],
            "states": [Jsonb(one.state.to_json()) for one in kept],
        },
    )
    effects = [effect for one in switched for effect in one.effects]
    await connection.execute(
        statement("rules.applying/drop_alarms"),
        {"ids": [effect.alarm_id for effect in effects if isinstance(effect, DropPending)]},
    )
    opened = [effect for effect in effects if isinstance(effect, Open)]
    resolved = [effect for effect in effects if isinstance(effect, Resolve)]
    await connection.execute(
        statement("rules.applying/move_alarms"),
        {
            "opened": [effect.alarm.id for effect in opened],
            "opened_at": [effect.at for effect in opened],
            "resolved": [effect.alarm.id for effect in resolved],
            "resolved_at": [effect.at for effect in resolved],
            "reasons": [effect.reason for effect in resolved],
        },
    )


def _events(one: Switched) -> Iterable[NewEvent]:
    for effect in one.effects:
        if isinstance(effect, Open):
            yield _edge(one, effect, "opened", effect.alarm.payload)
        elif isinstance(effect, Resolve):
            yield _edge(one, effect, "resolved", effect.payload)


def _edge(one: Switched, effect: Open | Resolve, edge: str, payload: Mapping[str, Any]) -> NewEvent:
    alarm = effect.alarm
    return NewEvent(
        id=edge_event_id(alarm.id, "opened" if edge == "opened" else "resolved"),
        ts=effect.at,
        origin="derived",
        type=f"alarm-{edge}",
        payload=payload,
        rule=alarm.rule,
        owner=alarm.owner,
        alarm_id=alarm.id,
        severity=alarm.severity,
        source_event_id=alarm.source_event_id,
        correlation_id=one.held.correlation_id,
    )
