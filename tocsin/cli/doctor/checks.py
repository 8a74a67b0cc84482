"""What the doctor can find, as pure functions from facts to findings.

Guarantee: whatever is red comes with a remedy. The bounds are generous: a finding is for a person, and a busy
machine is not a sick one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clock.held_timers import MOST_COUNTED, HeldTimers
from rules.lanes.status import PartitionStatus, WorkerProblem
from tocsin.cli.output import utc_text
from tocsin.core.errors import TocsinError
from tocsin.core.import_names import refuse_shadowed_names

if TYPE_CHECKING:
    from cdc.log_reader import Gap
    from cdc.report import Report
    from clock.retention.report import PruneReport

_SYSTEM_TZ = Path("/usr/share/zoneinfo/tzdata.zi")
_OFFSET = timedelta(seconds=1)
_OVERDUE = timedelta(seconds=10)
_LAG = 1000
_BEHIND_S = 10.0
_PRUNED_WITHIN = timedelta(days=1)
_PRUNE_REMEDY = "see that a clock leads, or run `tocsin prune`"


class Finding(NamedTuple):
    state: str
    """ok, info or red"""
    subject: str
    text: str
    remedy: str = ""


def split_remedy(error: TocsinError | str) -> tuple[str, str]:
    """Our sentences end with what to do, after the last colon and space."""
    problem, separator, remedy = str(error).rpartition(": ")
    return (problem, remedy) if separator else (remedy, "see the log of the service")


def import_names(running: str) -> list[Finding]:
    try:
        refuse_shadowed_names()
    except TocsinError as error:
        return [Finding("ok", "tocsin", running), Finding("red", "import names", *split_remedy(error))]
    return [Finding("ok", "tocsin", running)]


def system_tz_version(path: Path = _SYSTEM_TZ) -> str | None:
    """The release of the host's own tz data; None where the host has none."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline().split()
    except OSError:
        return None
    return first[-1] if first[:2] == ["#", "version"] else None


def tz_data(wheel: str, system: str | None) -> Finding:
    if system is None or system == wheel:
        return Finding("ok", "tz data", f"{wheel}, from the tzdata package")
    return Finding(
        "info", "tz data", f"{wheel}, from the tzdata package; the host's own copy, {system}, is not used"
    )


def clock_offset(host: datetime, database: datetime, round_trip: timedelta) -> Finding:
    """The reading happened somewhere within the round trip: that much is not an offset."""
    offset = database - host
    side = "ahead of" if offset > timedelta(0) else "behind"
    text = f"the database is {abs(offset.total_seconds()):.3f} s {side}"
    text += f" this host (measured within {round_trip.total_seconds():.3f} s)"
    if abs(offset) <= _OFFSET + round_trip:
        return Finding("ok", "clocks", text)
    return Finding(
        "red",
        "clocks",
        text,
        "everything fires by the database's clock: check NTP on the host of the database first, then here",
    )


def leader(role: str, holder: str | None, detail: str) -> Finding:
    if holder is None:
        return Finding(
            "red", role, f"nobody leads{detail}", f"start one with `tocsin run {role}`, or `tocsin up`"
        )
    return Finding("ok", role, f"led by {holder}{detail}")


def log_lag(head: int, last: int | None, stream: str) -> Finding:
    if last is None:
        if head == 0:
            return Finding("info", "log", f"empty; the stream {stream!r} is not made yet")
        return Finding(
            "red",
            "log",
            f"head at seq {head}, and there is no stream {stream!r}",
            "start a publisher with `tocsin run cdc`: it makes the stream from the log",
        )
    text = f"head at seq {head}, stream {stream!r} at {last}, lag {head - last}"
    if last > head:
        return Finding(
            "red",
            "log",
            text,
            "postgres lost commits, or a stranger publishes to the stream: restore a newer backup, or accept the "
            "loss with `tocsin cdc adopt`",
        )
    if head - last > _LAG:
        return Finding("red", "log", text, "see that one `tocsin run cdc` runs, and read its log")
    return Finding("ok", "log", text)


def cdc_audit(report: Report, silent: timedelta) -> Finding:
    """What the publisher last said of log and stream: it is in the database, so this needs no NATS."""
    if report.problem is not None and report.since is not None:
        text, remedy = split_remedy(report.detail or report.problem)
        return Finding(
            "red", "stream audit", f"{report.problem} since {utc_text(report.since)}: {text}", remedy
        )
    if report.at is None or report.age_s is None:
        return Finding("info", "stream audit", "no publisher has compared log and stream yet")
    text = f"{report.age_s:.0f} s ago, {report.compared} records compared, none different"
    if report.age_s > silent.total_seconds():
        return Finding(
            "red",
            "stream audit",
            f"the last was {text}",
            "see that one `tocsin run cdc` runs, and read its log",
        )
    return Finding("ok", "stream audit", text)


def log_gaps(gaps: Sequence[Gap]) -> list[Finding]:
    if not gaps:
        return []
    last = gaps[-1]
    count = sum(gap.until_seq - gap.from_seq + 1 for gap in gaps)
    text = (
        f"{len(gaps)} recorded, {count} records; the last {last.from_seq} to {last.until_seq} ({last.reason})"
    )
    return [Finding("info", "log gaps", text)]


class Workers(NamedTuple):
    alive: Sequence[str] = ()
    """Those that share the lanes."""
    refusing: Sequence[WorkerProblem] = ()

    def idle(self, subject: str, text: str) -> Finding:
        """Nobody does it: because somebody refuses, because somebody has only begun, or because nobody is there."""
        if self.refusing:
            reason, remedy = split_remedy(self.refusing[0].reason)
            who = (
                f"{len(self.refusing)} workers run and refuse"
                if len(self.refusing) > 1
                else "a worker refuses"
            )
            return Finding("red", subject, f"{text}; {who}: {reason}", remedy)
        if self.alive:
            remedy = "look again in a moment; if it stays so, read their logs"
            return Finding("red", subject, f"{text}, while {_workers(len(self.alive))} alive", remedy)
        return Finding("red", subject, text, "start a worker with `tocsin run worker`, or `tocsin up`")


def _workers(count: int) -> str:
    return "a worker is" if count == 1 else f"{count} workers are"


def worker_lag(
    purpose: str, pending: int | None, unacknowledged: int, workers: Workers | None = None
) -> Finding:
    subject = f"worker {purpose}"
    if pending is None:
        return (workers or Workers()).idle(subject, "no worker ever ran here")
    text = f"{pending} messages wait, {unacknowledged} are being worked on"
    if pending > _LAG:
        return Finding(
            "red", subject, text, "start more workers with `tocsin run worker`, and read their logs"
        )
    return Finding("ok", subject, text)


def lane(
    name: str, partitions: Sequence[PartitionStatus], waiting: int | None, workers: Workers | None = None
) -> Finding:
    """`waiting`: messages of the stream that are not read yet, if that is known."""
    subject = f"lane {name}"
    workers = workers or Workers()
    if not partitions:
        return workers.idle(subject, "no worker ever ran here")
    holders = sorted({one.holder for one in partitions if one.holder is not None})
    orphans = [str(one.partition) for one in partitions if one.holder is None]
    if orphans:
        text = f"nobody drains {len(orphans)} of {len(partitions)} partitions: {', '.join(orphans)}"
        return workers.idle(subject, text)
    behind_s = max((one.behind_s or 0.0 for one in partitions), default=0.0)
    many = f"{len(partitions)} partitions " if len(partitions) > 1 else ""
    shown = holders[0] if len(holders) == 1 else f"{len(holders)} workers"
    text = f"{many}drained by {shown}, "
    text += "" if waiting is None else f"{waiting} messages wait, "
    text += f"complete until {behind_s:.1f} s ago"
    if behind_s > _BEHIND_S or (waiting or 0) > _LAG:
        remedy = "start more workers with `tocsin run worker`, and read their logs"
        return Finding("red", subject, text, remedy)
    return Finding("ok", subject, text)


def pipeline(held: Sequence[HeldTimers]) -> Finding:
    """Verdicts that wait until their partition has been read."""
    if not held:
        return Finding("ok", "pipeline", "no verdict waits for data that is not read yet")
    timers = sum(one.timers for one in held)
    late_s = max((one.now - one.since).total_seconds() for one in held)
    partitions = ", ".join(f"{one.lane} {one.partition}" for one in held)
    shown = f"{timers}{' or more' if timers >= MOST_COUNTED else ''} verdicts wait"
    text = f"{shown} (pipeline-behind), the oldest for {late_s:.1f} s; partitions: {partitions}"
    if late_s > _BEHIND_S:
        return Finding("red", "pipeline", text, "start workers with `tocsin run worker`, and read their logs")
    return Finding("ok", "pipeline", text)


def dead_letters(counts: Mapping[str, int]) -> Finding:
    if not counts:
        return Finding("ok", "dead letters", "nothing was set aside")
    kept = ", ".join(f"{count:,} of kind {kind}" for kind, count in counts.items())
    return Finding("info", "dead letters", f"{kept}; `tocsin dead-letters` has them with their reasons")


def retention(last: PruneReport, ages: Mapping[str, float]) -> Finding:
    """`ages`: how many days each is kept."""
    kept = ", ".join(f"{what} {days:g} days" for what, days in ages.items())
    if last.began_at is None:
        return Finding("ok", "retention", f"{kept}; not looked at yet, it is done once an hour")
    gone = ", ".join(f"{count:,} of {table}" for table, count in last.removed.items()) or "nothing"
    if last.running:
        return Finding("ok", "retention", f"{kept}; at it since {utc_text(last.began_at)}, removed {gone}")
    if last.ended_at is None:
        text = f"{kept}; begun at {utc_text(last.began_at)} and interrupted, removed {gone}"
        if last.now - last.began_at > _PRUNED_WITHIN:
            return Finding("red", "retention", text, _PRUNE_REMEDY)
        return Finding("ok", "retention", f"{text}; the clock goes on within an hour")
    text = f"{kept}; at {utc_text(last.ended_at)} it removed {gone}"
    if last.left:
        whys = " and ".join(sorted({one["why"] for one in last.left}))
        text += f" and had to leave {', '.join(one['what'] for one in last.left[:5])}: {whys}"
    if last.now - last.ended_at > _PRUNED_WITHIN:
        return Finding("red", "retention", text, _PRUNE_REMEDY)
    if any(one["why"].startswith("it failed") for one in last.left):
        return Finding("red", "retention", text, "mend what the message speaks of, then run `tocsin prune`")
    if any("owner" in one["why"] for one in last.left):
        return Finding(
            "red", "retention", text, "run `tocsin prune` as the owner of the schema, by a timer of yours"
        )
    return Finding("ok", "retention", text)


def timers(parked: Sequence[str], more: bool, oldest_due: datetime | None, now: datetime) -> list[Finding]:
    found = []
    if parked:
        count = f"{len(parked)}{' or more' if more else ''}"
        text = f"{count} parked after repeated failures: {', '.join(parked[:5])}"
        found.append(
            Finding(
                "red",
                "timers",
                text,
                "`tocsin timers --parked` shows their errors; mend, then `tocsin timers retry KIND REF`",
            )
        )
    if oldest_due is not None and now - oldest_due > _OVERDUE:
        late_s = (now - oldest_due).total_seconds()
        found.append(
            Finding("red", "timers", f"the oldest is overdue by {late_s:.0f} s", "see that a clock leads")
        )
    return found or [Finding("ok", "timers", "none parked, none overdue")]
