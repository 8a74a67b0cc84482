"""Decides whether an alarm is suppressed, and by what. Pure: no I/O.

Guarantee: the result depends on the arguments alone. An alarm never inhibits itself. Two alarms that
both match `source` and `target` of an inhibit do not inhibit each other, so one of them at least is
notified. An alarm that is itself silenced still inhibits others: the cause is known.

A snooze comes before silences, and silences before inhibits. Among silences the one that ends last
is named, because the alarm stays suppressed until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from rules.language.cel import AlarmMatcher, ExpressionInvalid, compile_matcher
from schemas.documents import InhibitDocument
from tocsin.core.instant import instant_text

SUPPRESSION_KINDS = ("snooze", "silence", "inhibit")


@dataclass(frozen=True)
class MatchedAlarm:
    """The facts about an alarm that matchers read, and its snooze."""

    id: UUID
    rule: str
    owner: str = ""
    severity: int = 0
    payload: Mapping[str, Any] = field(default_factory=dict)
    """The payload of the alarm: key, instance, labels, title and event_type are read."""
    snoozed_until: datetime | None = None
    snoozed_by: str = ""

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields of a matcher (`schemas.fields.MATCHER_FIELDS`)."""
        labels = self.payload.get("labels")
        return {
            "rule": self.rule,
            "owner": self.owner,
            "severity": self.severity,
            "key": str(self.payload.get("key") or ""),
            "instance": str(self.payload.get("instance") or ""),
            "title": str(self.payload.get("title") or ""),
            "type": str(self.payload.get("event_type") or ""),
            "labels": labels if isinstance(labels, Mapping) else {},
        }


def matched_alarm(row: Mapping[str, Any]) -> MatchedAlarm:
    """The facts of a row of `tocsin.alarm`, or of an alarm as steps read it (`rule`)."""
    return MatchedAlarm(
        id=row["id"] if isinstance(row["id"], UUID) else UUID(row["id"]),
        rule=row["event_rule"] if "event_rule" in row else row["rule"],
        owner=row["owner"],
        severity=row["severity"],
        payload=row["payload"],
        snoozed_until=row.get("snoozed_until"),
        snoozed_by=row.get("snoozed_by") or "",
    )


@dataclass(frozen=True)
class Silence:
    """Mutes the alarms that match, from one instant until another."""

    id: UUID
    matcher: str
    starts_at: datetime
    ends_at: datetime
    reason: str = ""
    created_by: str = ""
    source: str = "operator"
    """`operator`, or `maintenance:<name>`."""

    def is_in_force(self, now: datetime) -> bool:
        return self.starts_at <= now < self.ends_at

    def mutes(self, alarm: MatchedAlarm) -> bool:
        try:
            return compile_matcher(self.matcher).matches(alarm.fields)
        except ExpressionInvalid:
            # Another version of Tocsin accepted it. A page too many is better than one too few.
            return False

    @property
    def title(self) -> str:
        """`silence 1a2b3c4d`, or `maintenance patch-night`."""
        kind, _, name = self.source.partition(":")
        return f"maintenance {name}" if kind == "maintenance" else f"silence {str(self.id)[:8]}"


@dataclass(frozen=True)
class Inhibit:
    """A compiled `inhibit` document."""

    name: str
    source: AlarmMatcher
    target: AlarmMatcher
    equal: tuple[str, ...] = ()

    @classmethod
    def of(cls, document: InhibitDocument) -> Inhibit:
        source, target = compile_matcher(document.source), compile_matcher(document.target)
        return cls(document.name, source, target, document.equal)

    def inhibits(self, source: MatchedAlarm, target: MatchedAlarm) -> bool:
        """Whether one open alarm suppresses another."""
        if source.id == target.id or not self._are_equal(source, target):
            return False
        if not self.target.matches(target.fields) or not self.source.matches(source.fields):
            return False
        # As in Alertmanager: otherwise two alarms that match both sides would suppress each other.
        is_symmetric = self.source.matches(target.fields) and self.target.matches(source.fields)
        return not is_symmetric

    def equal_values(self, alarm: MatchedAlarm) -> tuple[Any, ...] | None:
        """The values of the fields in `equal`; None if the alarm does not have one of the labels."""
        values = tuple(_value(alarm, name) for name in self.equal)
        return None if None in values else values

    def _are_equal(self, source: MatchedAlarm, target: MatchedAlarm) -> bool:
        values = self.equal_values(target)
        return values is not None and values == self.equal_values(source)


@dataclass(frozen=True)
class Suppression:
    key: str
    """`snooze`, `silence:<id>` or `alarm:<id>` of the inhibiting alarm."""
    reason: str
    """A text that follows `held by`."""
    until: datetime | None = None
    """When it ends; None if the end of another alarm ends it."""

    @property
    def kind(self) -> str:
        """One of `SUPPRESSION_KINDS`."""
        return {"alarm": "inhibit"}.get(prefix := self.key.partition(":")[0], prefix)


def suppressed_by(
    alarm: MatchedAlarm,
    silences: Iterable[Silence] | SilencesInForce,
    inhibits: Sequence[Inhibit],
    open_alarms: Iterable[MatchedAlarm] | Inhibition,
    now: datetime,
) -> Suppression | None:
    """The suppression of an open alarm at `now`; None if it is notified.

    `open_alarms` has at least the open alarms that can match the source of an inhibit. For many
    alarms, `SilencesInForce` and an `Inhibition` are made once.
    """
    if alarm.snoozed_until is not None and now < alarm.snoozed_until:
        by = f" by {alarm.snoozed_by}" if alarm.snoozed_by else ""
        until = f"until {instant_text(alarm.snoozed_until)}"
        return Suppression("snooze", f"a snooze{by} {until}", alarm.snoozed_until)
    in_force = silences if isinstance(silences, SilencesInForce) else SilencesInForce(silences, now)
    silence = in_force.of(alarm)
    if silence is not None:
        return Suppression(f"silence:{silence.id}", _silence_text(silence), silence.ends_at)
    inhibition = open_alarms if isinstance(open_alarms, Inhibition) else Inhibition(inhibits, open_alarms)
    return inhibition.of(alarm)


class SilencesInForce:
    """The silences at an instant, ordered once for many alarms.

    A silence whose matcher names owners or rules is evaluated for their alarms only. The silence that
    ends last comes first, and the first that matches is the result.
    """

    def __init__(self, silences: Iterable[Silence], now: datetime) -> None:
        self._of_owner: dict[str, list[Silence]] = {}
        self._of_rule: dict[str, list[Silence]] = {}
        self._of_any: list[Silence] = []
        for silence in sorted(silences, key=_last_first, reverse=True):
            if silence.is_in_force(now):
                self._add(silence)

    @property
    def width(self) -> int:
        """The number of matchers that are evaluated for one alarm, at most."""
        narrowed = (max(map(len, by.values()), default=0) for by in (self._of_owner, self._of_rule))
        return len(self._of_any) + sum(narrowed)

    def of(self, alarm: MatchedAlarm) -> Silence | None:
        """The silence that mutes an alarm; of several the one that ends last."""
        narrowed = [*self._of_owner.get(alarm.owner, ()), *self._of_rule.get(alarm.rule, ())]
        candidates = (
            sorted([*narrowed, *self._of_any], key=_last_first, reverse=True) if narrowed else self._of_any
        )
        return next((silence for silence in candidates if silence.mutes(alarm)), None)

    def _add(self, silence: Silence) -> None:
        try:
            matcher = compile_matcher(silence.matcher)
        except ExpressionInvalid:
            return
        owners, rules = matcher.only("owner"), matcher.only("rule")
        if owners is not None:
            for owner in owners:
                self._of_owner.setdefault(owner, []).append(silence)
        elif rules is not None:
            for rule in rules:
                self._of_rule.setdefault(rule, []).append(silence)
        else:
            self._of_any.append(silence)


def _last_first(silence: Silence) -> tuple[datetime, UUID]:
    return silence.ends_at, silence.id


class Inhibition:
    """The open alarms that inhibit others, found once for many alarms."""

    def __init__(self, inhibits: Sequence[Inhibit], open_alarms: Iterable[MatchedAlarm]) -> None:
        # By id, so that the same alarms always give the same reason.
        self._sources: list[tuple[Inhibit, dict[tuple[Any, ...], list[MatchedAlarm]]]] = [
            (inhibit, {}) for inhibit in inhibits
        ]
        self.add(sorted(open_alarms, key=lambda alarm: alarm.id) if inhibits else ())

    def add(self, alarms: Iterable[MatchedAlarm]) -> None:
        """Add open alarms with higher ids than those before."""
        for inhibit, sources in self._sources:
            for alarm in alarms:
                values = inhibit.equal_values(alarm)
                if values is not None and inhibit.source.matches(alarm.fields):
                    sources.setdefault(values, []).append(alarm)

    def of(self, alarm: MatchedAlarm) -> Suppression | None:
        for inhibit, sources in self._sources:
            values = inhibit.equal_values(alarm)
            for source in sources.get(values, ()) if values is not None else ():
                if inhibit.inhibits(source, alarm):
                    of_owner = f" of {source.owner!r}" if source.owner else ""
                    name = f"{str(source.id)[:8]} ({source.rule}{of_owner})"
                    return Suppression(f"alarm:{source.id}", f"alarm {name}, by inhibit {inhibit.name}")
        return None


def _silence_text(silence: Silence) -> str:
    """`silence 1a2b3c4d (fan swap, ann, until 2026-03-07T00:00:00Z)`"""
    facts = [silence.reason, silence.created_by, f"until {instant_text(silence.ends_at)}"]
    return f"{silence.title} ({', '.join(fact for fact in facts if fact)})"


def _value(alarm: MatchedAlarm, field: str) -> Any:
    """None for a label that the alarm does not have."""
    if field.startswith("labels."):
        return alarm.fields["labels"].get(field.removeprefix("labels."))
    return alarm.fields[field]
