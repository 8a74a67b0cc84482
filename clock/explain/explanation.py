"""Explanations: why a schedule did or did not fire at an instant, from its records. Pure.

Guarantee: every question has exactly one outcome, and every statement of the sentence is a fact of
a record: the fire with the derived id of the occurrence, the missed event that spans it, the tick,
or a change in the audit. A fire takes precedence over a miss, and both over anything that is only
concluded. Where there is no record, the outcome is `unrecorded`, not a guess.

Why by generation: an occurrence belongs to the version of the schedule that was in force before it.
Its outcome is either in the log under that generation, or the next change replaced it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from clock.explain.history import (
    History,
    Row,
    Version,
    first_with_status,
    last_instant,
    latest_occurrence,
    next_occurrence,
    successor,
    version_in_force,
)
from clock.explain.text import length, when
from timers.identity import spread_of
from timers.recurrence import Occurrence
from timers.recurrence.recurrence import as_utc
from timers.recurrence.zones import zone
from tocsin.core.instant import parse_instant

_ON_TIME = timedelta(seconds=1)


@dataclass(frozen=True)
class Explanation:
    """The answer: an outcome for programs, a sentence for people, and the facts of both."""

    outcome: str
    """`fired`, `late`, `spread`, `moved`, `missed`, `paused`, `cancelled`, `edited`, `parked`,
    `pending`, `ended`, `not-an-occurrence` or `unrecorded`."""
    sentence: str
    facts: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ScheduleRecords:
    """All rows that an explanation of one instant is made from."""

    row: Row
    """The schedule with its tick, as `find_schedule` returns it."""
    history: History
    asked: datetime
    now: datetime
    fires: Mapping[str, Row]
    """Fires by id, as 32 hexadecimal digits."""
    missed: Sequence[Row]
    log_from: datetime | None = None
    """When the log begins, if older records were dropped."""

    @property
    def timer(self) -> str:
        return f"schedule-tick/{self.row['id']}"


def possible_ids(row: Row, history: History, asked: datetime) -> dict[str, tuple[Version, Occurrence]]:
    """The ids of all fires that the asked instant may mean, the newest generation first.

    A tick that newer tz data would put elsewhere is identified by its instant, so that id is
    included as well.
    """
    possible = {}
    for version in reversed(history):
        occurrence = version.find_occurrence(asked) or Occurrence(asked, None, 0, None)
        possible[version.event_id(row["id"], occurrence)] = (version, occurrence)
    return possible


def explain(records: ScheduleRecords) -> Explanation:
    explanation = _explain_fire(records) or _explain_miss(records) or _explain_absence(records)
    facts = {
        "schedule": records.row["name"],
        "owner": records.row["owner"],
        "asked": records.asked,
        "timer": records.timer,
    }
    return Explanation(explanation.outcome, explanation.sentence, {**facts, **explanation.facts})


def _explain_fire(records: ScheduleRecords) -> Explanation | None:
    for id, (version, occurrence) in possible_ids(records.row, records.history, records.asked).items():
        if id in records.fires:
            return _fire_explanation(records, version, occurrence, records.fires[id])
    return None


def _fire_explanation(
    records: ScheduleRecords, version: Version, occurrence: Occurrence, event: Row
) -> Explanation:
    tz = version.tz
    due_at = event["fire_at"]
    late = max(event["recorded_at"] - due_at, timedelta(0))
    spread = due_at - occurrence.at
    cited = f"seq {event['seq']}, generation {version.generation}"
    outcome = _fire_outcome(occurrence, tz, late, spread)
    if outcome == "late":
        sentence = (
            f"fired at {when(event['recorded_at'], tz)}, {length(late)} late: it was due at "
            f"{when(due_at, tz)}, {cited}"
        )
    else:
        sentence = f"fired at {when(due_at, tz)}, {cited}, {length(late)} late"
    if spread:
        sentence += f"; its spread put it {length(spread)} after its nominal time {when(occurrence.at, tz)}"
    if occurrence.at <= records.history[0].at:
        sentence += f"; this time had passed when it was added at {when(records.history[0].at, tz)}"
    if records.row["status"] == "ended" and occurrence.at == records.row["last_occurrence"]:
        sentence += "; it was the last one, the schedule has ended"
    facts = {
        **_occurrence_facts(version, occurrence),
        "seq": event["seq"],
        "event_id": event["id"],
        "epoch": event["epoch"],
        "due_at": due_at,
        "recorded_at": event["recorded_at"],
        "late_ms": late // timedelta(milliseconds=1),
    }
    return Explanation(outcome, sentence + _note(occurrence), facts)


def _fire_outcome(occurrence: Occurrence, tz: str, late: timedelta, spread: timedelta) -> str:
    if late > _ON_TIME:
        return "late"
    if occurrence.wall is not None and occurrence.at.astimezone(zone(tz)).replace(tzinfo=None) != (
        occurrence.wall
    ):
        return "moved"
    return "spread" if spread else "fired"


def _explain_miss(records: ScheduleRecords) -> Explanation | None:
    for event in records.missed:
        first, last = (parse_instant(event["payload"][end]) for end in ("first", "last"))
        for version in records.history:
            occurrence = version.find_occurrence(records.asked)
            if occurrence is None or not first <= occurrence.at <= last:
                continue
            if version.missed_id(records.row["id"], first) == event["id"].hex:
                return _miss_explanation(version, occurrence, event, (first, last))
    return None


def _miss_explanation(
    version: Version, occurrence: Occurrence, event: Row, span: tuple[datetime, datetime]
) -> Explanation:
    payload = event["payload"]
    tz = version.tz
    count = f"{'at least ' if payload['at_least'] else ''}{payload['count']}"
    spanned = (
        "" if payload["count"] == 1 else f", one of {count} from {when(span[0], tz)} to {when(span[1], tz)}"
    )
    sentence = (
        f"missed at {when(occurrence.at, tz)}{spanned}: {payload['reason']}; recorded at "
        f"{when(event['recorded_at'], tz)}, seq {event['seq']}, generation {version.generation}"
    )
    facts = {
        **_occurrence_facts(version, occurrence),
        "seq": event["seq"],
        "event_id": event["id"],
        "recorded_at": event["recorded_at"],
        **{key: payload[key] for key in ("reason", "count", "at_least", "first", "last")},
    }
    return Explanation("missed", sentence + _note(occurrence), facts)


def _explain_absence(records: ScheduleRecords) -> Explanation:
    """Explain an instant that neither fired nor was missed."""
    version = version_in_force(records.history, records.asked)
    occurrence = None if version is None else _occurrence_of(records, version)
    if version is None or occurrence is None:
        return _explain_unnamed(records, version)
    if version.status == "active":
        if records.log_from is not None and occurrence.at < records.log_from:
            return _explain_dropped(version, occurrence, records.log_from)
        next_version = successor(records.history, version)
        if next_version is None:
            return _explain_armed(records, version, occurrence)
        return _explain_replaced(version, occurrence, next_version)
    return _explain_inactive(records, version, occurrence)


def _occurrence_of(records: ScheduleRecords, version: Version) -> Occurrence | None:
    """The occurrence that the version names.

    The armed tick is one, even if its recurrence no longer names it.
    """
    occurrence = version.find_occurrence(records.asked)
    armed_at = records.row["nominal_at"]
    if occurrence is None and version is records.history[-1] and armed_at is not None:
        armed_at = as_utc(armed_at, "nominal_at")
        if records.asked <= armed_at <= last_instant(records.asked):
            return Occurrence(armed_at, None, 0, None)
        if version.recurrence is None and records.asked >= armed_at:
            return Occurrence(records.asked, None, 0, None)
    return occurrence


def _explain_dropped(version: Version, occurrence: Occurrence, log_from: datetime) -> Explanation:
    sentence = (
        f"there is no longer a record of {when(occurrence.at, version.tz)}: generation {version.generation} names "
        f"it, and records older than {when(log_from, version.tz)} were dropped"
    )
    facts = {**_occurrence_facts(version, occurrence), "log_from": log_from}
    return Explanation("unrecorded", sentence + _note(occurrence), facts)


def _explain_armed(records: ScheduleRecords, version: Version, occurrence: Occurrence) -> Explanation:
    """The newest version is active: the tick explains it, or there is no record."""
    row = records.row
    if row["nominal_at"] is None or occurrence.at < row["nominal_at"]:
        sentence = (
            f"there is no record of {when(occurrence.at, version.tz)}: generation {version.generation} names "
            "it, and the log holds neither a fire nor a miss of it"
        )
        return Explanation("unrecorded", sentence + _note(occurrence), _occurrence_facts(version, occurrence))
    failure = {key: row[key] for key in ("attempts", "last_error", "parked_at")}
    facts = {**_occurrence_facts(version, occurrence), **(failure if row["attempts"] else {})}
    if row["parked_at"] is not None:
        sentence = (
            f"did not fire at {when(occurrence.at, version.tz)}: its timer {records.timer} was parked at "
            f"{when(row['parked_at'], version.tz)} after {row['attempts']} attempts ({row['last_error']}), "
            f"generation {version.generation}; edit the schedule to arm it again"
        )
        return Explanation("parked", sentence + _note(occurrence), facts)
    due_at = occurrence.at + spread_of(row["owner"], row["name"], row["spread"])
    pending = _pending_sentence(records, version, occurrence, due_at)
    return Explanation("pending", pending + _note(occurrence), {**facts, "due_at": due_at})


def _pending_sentence(
    records: ScheduleRecords, version: Version, occurrence: Occurrence, due_at: datetime
) -> str:
    row, tz = records.row, version.tz
    cited = f"timer {records.timer}, generation {version.generation}"
    if row["attempts"] and occurrence.at == row["nominal_at"]:
        return (
            f"has not fired at {when(due_at, tz)} yet: {row['attempts']} attempts failed ({row['last_error']}), "
            f"the next one is at {when(row['fire_at'], tz)}, {cited}"
        )
    if due_at <= records.now:
        return (
            f"has not fired at {when(due_at, tz)} yet: it is {length(records.now - due_at)} overdue, {cited}; "
            "`tocsin doctor` shows whether a clock runs"
        )
    text = f"not due yet: fires at {when(due_at, tz)}, in {length(due_at - records.now)}, {cited}"
    if due_at != occurrence.at:
        text += f"; its spread puts it {length(due_at - occurrence.at)} after {when(occurrence.at, tz)}"
    return text


def _explain_inactive(records: ScheduleRecords, version: Version, occurrence: Occurrence) -> Explanation:
    """The schedule was paused or cancelled at that time."""
    change = first_with_status(records.history, version)
    end = successor(records.history, version)
    while end is not None and end.status == version.status:
        end = successor(records.history, end)
    until = f"; it is still {version.status}" if end is None and version.status == "paused" else ""
    if end is not None:
        until = f"; {_by(end, version.tz)} made it {end.status} again (generation {end.generation})"
    verb = "would not fire" if occurrence.at > records.now else "did not fire"
    sentence = (
        f"{verb} at {when(occurrence.at, version.tz)}: {_by(change, version.tz)} {version.status} it "
        f"(generation {change.generation}){until}"
    )
    facts = {**_occurrence_facts(version, occurrence), **_change_facts(change)}
    return Explanation(version.status, sentence + _note(occurrence), facts)


def _explain_replaced(version: Version, occurrence: Occurrence, change: Version) -> Explanation:
    """The occurrence was due, and a change came before the fire."""
    done = "edited" if change.status == "active" else change.status
    sentence = (
        f"did not fire at {when(occurrence.at, version.tz)}: generation {version.generation} had not fired it yet "
        f"when {_by(change, version.tz)} {done} it (generation {change.generation}), and a change never fires "
        "retroactively"
    )
    facts = {**_occurrence_facts(version, occurrence), **_change_facts(change)}
    return Explanation(done, sentence + _note(occurrence), facts)


def _explain_unnamed(records: ScheduleRecords, version: Version | None) -> Explanation:
    """The version in force does not name the asked instant."""
    history, asked = records.history, records.asked
    if version is None:
        first = history[0]
        return _explain_no_occurrence(records, first, f"it was added later: {_by(first, first.tz)}")
    for earlier in reversed(history[: history.index(version)]):
        occurrence = earlier.find_occurrence(asked)
        if occurrence is not None and earlier.at < occurrence.at:
            return _explain_edited(records, earlier, occurrence, version)
    last = latest_occurrence(version, history, asked)
    if last is not None and next_occurrence(version, history, asked) is None:
        sentence = (
            f"did not fire at {when(asked, version.tz)}: {version.description} has no time after "
            f"{when(last.at, version.tz)}, the schedule is {records.row['status']}, generation {version.generation}"
        )
        facts = {"generation": version.generation, "tz": version.tz, "last_at": last.at}
        return Explanation("ended", sentence + _note(last), facts)
    reason = version.exclusion(asked)
    if reason is not None:
        return _explain_excluded(records, version, reason)
    return _explain_no_occurrence(records, version, "")


def _explain_edited(
    records: ScheduleRecords, earlier: Version, occurrence: Occurrence, version: Version
) -> Explanation:
    """An earlier generation named this time, and an edit before that time removed it."""
    history = records.history
    # The edit that removed it is the first that no longer names it, not the newest.
    edit = next(
        later
        for later in history[history.index(earlier) + 1 :]
        if later.find_occurrence(records.asked) is None
    )
    following = next_occurrence(version, history, records.asked)
    then = f"; the next time is {when(following.at, version.tz)}" if following is not None else ""
    why = "".join(f", {reason}" for reason in [edit.exclusion(records.asked)] if reason)
    sentence = (
        f"did not fire at {when(occurrence.at, earlier.tz)}: generation {earlier.generation} named this time, "
        f"{_by(edit, earlier.tz)} edited it to {edit.description}{why} (generation {edit.generation}){then}"
    )
    facts = {**_occurrence_facts(earlier, occurrence), **_change_facts(edit)}
    facts["nearest_after"] = following and following.at
    return Explanation("edited", sentence + _note(occurrence), facts)


def _explain_excluded(records: ScheduleRecords, version: Version, reason: str) -> Explanation:
    following = next_occurrence(version, records.history, records.asked)
    then = f"; the next time is {when(following.at, version.tz)}" if following is not None else ""
    sentence = (
        f"did not fire at {when(records.asked, version.tz)}: {reason} (generation {version.generation}){then}"
    )
    facts = {"generation": version.generation, "tz": version.tz, "nearest_after": following and following.at}
    return Explanation("excluded", sentence, facts)


def _explain_no_occurrence(records: ScheduleRecords, version: Version, why: str) -> Explanation:
    earlier, later = (
        latest_occurrence(version, records.history, records.asked),
        next_occurrence(version, records.history, records.asked),
    )
    near = " and ".join(
        f"{when(occurrence.at, version.tz)}{_bracketed(occurrence)}"
        for occurrence in (earlier, later)
        if occurrence is not None
    )
    sentence = (
        f"{when(records.asked, version.tz)} is not an occurrence of {version.description} "
        f"(generation {version.generation})"
    )
    sentence += f"; {why}" if why else ""
    sentence += f"; the nearest: {near}" if near else ""
    facts = {
        "generation": version.generation,
        "tz": version.tz,
        "nearest_before": earlier and earlier.at,
        "nearest_after": later and later.at,
    }
    return Explanation("not-an-occurrence", sentence, facts)


def _by(change: Version, tz: str) -> str:
    return f"{change.who} via {change.via} at {when(change.at, tz)}"


def _note(occurrence: Occurrence) -> str:
    return f"; {occurrence.note}" if occurrence.note else ""


def _bracketed(occurrence: Occurrence) -> str:
    return f" [{occurrence.note}]" if occurrence.note else ""


def _occurrence_facts(version: Version, occurrence: Occurrence) -> dict[str, Any]:
    return {
        "nominal_at": occurrence.at,
        "generation": version.generation,
        "tz": version.tz,
        "note": occurrence.note,
    }


def _change_facts(change: Version) -> dict[str, Any]:
    return {"who": change.who, "via": change.via, "acted_at": change.at, "act_generation": change.generation}
