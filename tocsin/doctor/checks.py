"""The checks of `tocsin doctor`, from facts to findings. No I/O, except in `check_import_names`.

Guarantee: each red finding has a remedy. The limits are generous, because a busy machine is not a
broken one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clock.held_timers import MOST_COUNTED, HeldTimers
from rules.alarms.notifications import FailingNotifications
from rules.lanes.status import PartitionStatus, RecentGaps, WorkerProblem
from timers.time_text import utc_text
from tocsin.core.errors import TocsinError
from tocsin.core.import_names import refuse_shadowed_names

if TYPE_CHECKING:
    from cdc.log_reader import Gap
    from cdc.report import PublisherReport
    from clock.retention.report import PruneReport

_SYSTEM_TZ = Path("/usr/share/zoneinfo/tzdata.zi")
_OFFSET = timedelta(seconds=1)
_OVERDUE = timedelta(seconds=10)
_LAG = 1000
_BEHIND_S = 10.0
_NO_CANARY_S = 3.0
_PRUNED_WITHIN = timedelta(days=1)
_COMMIT_WAIT_S = 5.0
COMMITS = "commits"
# Advice about a service that does not work, which is wrong while commits wait.
_ABOUT_SERVICES = (
    *("start one with", "start a worker", "start a publisher", "start more workers"),
    *("check that", "try again", "read its log"),
)
_READ_LOG = "read the log of the service"
_READ_SERVICE = "read its log or its /healthz, which name what it waits for"
_IF_ONE_RUNS = "if one runs, its log names what it waits for"
_START_CLOCK = "check that a clock leads, or run `tocsin prune`"
_START_CDC = "check that `tocsin run cdc` runs, and read its log"
_TAKE_MESSAGES = (
    "see that the data stream has a leader, disk space and no lower limits than Tocsin sets, and that the user of "
    "the workers may publish to it (deploy/nats/permissions.conf)"
)
_START_WORKERS = "start more workers with `tocsin run worker`, and read their logs"


class Finding(NamedTuple):
    state: str
    """`ok`, `info` or `red`."""
    subject: str
    text: str
    remedy: str = ""


def failed(subject: str, error: TocsinError) -> Finding:
    return Finding("red", subject, error.message, error.remedy or _READ_LOG)


def check_import_names(version: str) -> list[Finding]:
    running = Finding("ok", "tocsin", version)
    try:
        refuse_shadowed_names()
    except TocsinError as error:
        return [running, failed("import names", error)]
    return [running]


def system_tz_version(path: Path = _SYSTEM_TZ) -> str | None:
    """The release of the tz data of the host; None if the host has none."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline().split()
    except OSError:
        return None
    return first[-1] if first[:2] == ["#", "version"] else None


def check_tz_data(wheel: str, system: str | None) -> Finding:
    if system is None or system == wheel:
        return Finding("ok", "tz data", f"{wheel}, from the tzdata package")
    return Finding(
        "info", "tz data", f"{wheel}, from the tzdata package; the host's own copy, {system}, is not used"
    )


def check_clock_offset(host: datetime, database: datetime, round_trip: timedelta) -> Finding:
    """The database read its clock at some moment of the round trip, so the offset is only known to that."""
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
        "timers fire by the clock of the database: check NTP on the host of the database first, then here",
    )


def check_commits(waited_s: float) -> list[Finding]:
    """Commits that wait for a synchronous standby: everything that writes waits with them."""
    if waited_s <= _COMMIT_WAIT_S:
        return []
    text = f"a commit has waited for a synchronous standby for {waited_s:.0f} s, so nothing is written"
    return [
        Finding("red", COMMITS, text, "start the standby, or change synchronous_standby_names and reload")
    ]


def explained(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, in which remedies that would start services refer to commits that wait."""
    if not any(finding.subject == COMMITS for finding in findings):
        return list(findings)
    return [
        finding._replace(remedy=f"it waits for {COMMITS}, see there")
        if finding.remedy.startswith(_ABOUT_SERVICES)
        else finding
        for finding in findings
    ]


def check_leader(role: str, holder: str | None, detail: str, sessions: int = 0) -> Finding:
    """`sessions` is the number of sessions that services of this role have in Postgres."""
    if holder is None:
        if sessions:
            return Finding("red", role, f"no leader{detail}, while a {role} runs", _READ_SERVICE)
        return Finding(
            "red",
            role,
            f"no leader{detail}",
            f"start one with `tocsin run {role}`, or `tocsin up`; {_IF_ONE_RUNS}",
        )
    return Finding("ok", role, f"led by {holder}{detail}")


def check_epoch_holder(holder: str | None, writer: str | None) -> list[Finding]:
    """`holder` has the lease in NATS, `writer` the newest epoch in Postgres. They are the same process.

    They differ for a moment while another clock takes over.
    """
    if holder is None or writer is None or holder == writer:
        return []
    return [
        Finding(
            "red",
            "clock",
            f"{holder} holds the lease, and {writer} has the newest epoch: the lease was written by something else, "
            "or the clock cannot take over",
            "check which users may publish to the lease bucket (`tocsin streams config`), and read the log of "
            "the clock",
        )
    ]


def check_log_lag(head: int, last: int | None, stream: str) -> Finding:
    if last is None:
        if head == 0:
            return Finding("info", "log", f"empty; the stream {stream!r} does not exist yet")
        return Finding(
            "red",
            "log",
            f"head at seq {head}, and the stream {stream!r} does not exist",
            "start a publisher with `tocsin run cdc`, which creates the stream from the log",
        )
    text = f"head at seq {head}, stream {stream!r} at {last}, lag {head - last}"
    if last > head:
        return Finding(
            "red",
            "log",
            text,
            "postgres lost commits, or another client publishes to the stream: restore a newer backup, or "
            "accept the loss with `tocsin cdc adopt`",
        )
    if head - last > _LAG:
        return Finding("red", "log", text, _START_CDC)
    return Finding("ok", "log", text)


def check_stream(report: PublisherReport, longest_age: timedelta) -> Finding:
    """The last report of the publisher about log and stream. It is in the database, so this needs no NATS."""
    if report.problem is not None and report.since is not None:
        text = f"{report.problem} since {utc_text(report.since)}: {report.detail or 'no details'}"
        return Finding("red", "stream check", text, report.remedy or _READ_LOG)
    if report.at is None or report.age_s is None:
        return Finding("info", "stream check", "no publisher has compared log and stream yet")
    text = f"{report.age_s:.0f} s ago, {report.compared} records compared, none different"
    if report.age_s > longest_age.total_seconds():
        return Finding("red", "stream check", f"the last was {text}", _START_CDC)
    return Finding("ok", "stream check", text)


def check_log_gaps(gaps: Sequence[Gap]) -> list[Finding]:
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
    """The workers that share the lanes."""
    problems: Sequence[WorkerProblem] = ()
    """Of workers that run and cannot work."""
    sessions: int = 0
    """The number of sessions that workers have in Postgres."""

    def idle(self, subject: str, text: str) -> Finding:
        """No worker does it: they have a problem, they have just started, or there are none."""
        if self.problems:
            first, count = self.problems[0], len(self.problems)
            workers = f"{count} workers run and cannot work" if count > 1 else "a worker cannot work"
            return Finding("red", subject, f"{text}; {workers}: {first.reason}", first.remedy or _READ_LOG)
        if self.alive:
            workers = "a worker is" if len(self.alive) == 1 else f"{len(self.alive)} workers are"
            remedy = "try again in a moment; if it stays, read the logs of the workers"
            return Finding("red", subject, f"{text}, while {workers} alive", remedy)
        if self.sessions:
            return Finding("red", subject, f"{text}, while a worker runs", _READ_SERVICE)
        remedy = f"start a worker with `tocsin run worker`, or `tocsin up`; {_IF_ONE_RUNS}"
        return Finding("red", subject, text, remedy)


def check_worker_problems(problems: Sequence[WorkerProblem]) -> list[Finding]:
    """Workers that run while a part of them, or a partition, waits."""
    return [
        Finding("red", "worker", f"{problem.worker}: {problem.reason}", problem.remedy or _READ_LOG)
        for problem in problems
    ]


def check_failing_timers(count: int, more: bool, error: str | None) -> list[Finding]:
    """Timers that failed and are retried. They are not parked while they fail in the same way."""
    if not count:
        return []
    text = (
        f"{count}{' or more' if more else ''} failed and are retried by themselves, the first with: {error}"
    )
    return [Finding("red", "timers", text, "remove the cause, or read the log of the clock")]


def check_worker_lag(
    purpose: str, pending: int | None, unacknowledged: int, workers: Workers | None = None
) -> Finding:
    subject = f"worker {purpose}"
    if pending is None:
        return (workers or Workers()).idle(subject, "no worker has run yet")
    text = f"{pending} messages wait, {unacknowledged} are in progress"
    if pending > _LAG:
        return Finding("red", subject, text, _START_WORKERS)
    return Finding("ok", subject, text)


def check_lane(
    name: str, partitions: Sequence[PartitionStatus], waiting: int | None, workers: Workers | None = None
) -> Finding:
    """`waiting` is the number of messages that are not read yet, if it is known."""
    subject = f"lane {name}"
    workers = workers or Workers()
    if not partitions:
        return workers.idle(subject, "no worker has run yet")
    unread = [str(partition.partition) for partition in partitions if partition.holder is None]
    if unread:
        text = f"no worker reads {len(unread)} of {len(partitions)} partitions: {', '.join(unread)}"
        return workers.idle(subject, text)
    failing = [partition for partition in partitions if _lacks_canaries(partition)]
    if failing:
        names = ", ".join(str(partition.partition) for partition in failing)
        text = (
            f"NATS accepts no messages in {len(failing)} of {len(partitions)} partitions ({names}), "
            f"producers may not be able to publish: {failing[0].canary_error}"
        )
        return Finding("red", subject, text, _TAKE_MESSAGES)
    holders = sorted({partition.holder for partition in partitions if partition.holder is not None})
    behind_s = max(partition.behind_s or 0.0 for partition in partitions)
    subjects = f"{len(partitions)} partitions " if len(partitions) > 1 else ""
    readers = holders[0] if len(holders) == 1 else f"{len(holders)} workers"
    text = f"{subjects}read by {readers}, "
    text += "" if waiting is None else f"{waiting} messages wait, "
    text += f"watermark {behind_s:.1f} s ago"
    if behind_s > _BEHIND_S or (waiting or 0) > _LAG:
        return Finding("red", subject, text, _START_WORKERS)
    return Finding("ok", subject, text)


def _lacks_canaries(partition: PartitionStatus) -> bool:
    is_late = partition.behind_s is None or partition.behind_s > _NO_CANARY_S
    return partition.canary_error is not None and is_late


def check_arrival_gaps(gaps: RecentGaps) -> Finding:
    """Times in which no message arrived in a partition of the data stream."""
    if gaps.last_began_at is None or gaps.last_ended_at is None:
        return Finding("ok", "arrival gaps", "none in the last hour")
    length_s = (gaps.last_ended_at - gaps.last_began_at).total_seconds()
    text = (
        f"{gaps.number} in {gaps.partitions} partitions in the last hour, the last one for {length_s:.1f} s until "
        f"{utc_text(gaps.last_ended_at)}; deadlines of series were extended"
    )
    return Finding("info", "arrival gaps", text)


def check_held_timers(partitions: Sequence[HeldTimers]) -> Finding:
    """Timers that wait until the watermark of their partition has passed their deadline."""
    if not partitions:
        return Finding("ok", "held timers", "none")
    timers = sum(held.timers for held in partitions)
    late_s = max((held.now - held.since).total_seconds() for held in partitions)
    names = ", ".join(f"{held.lane} {held.partition}" for held in partitions)
    count = f"{timers}{' or more' if timers >= MOST_COUNTED else ''}"
    text = f"{count} wait for data that is not read yet, the oldest for {late_s:.1f} s; partitions: {names}"
    if late_s > _BEHIND_S:
        return Finding("red", "held timers", text, _START_WORKERS)
    return Finding("ok", "held timers", text)


def check_dead_runs(count: int, newest_at: datetime | None) -> Finding:
    """Runs that died within the last day and were not retried."""
    if not count or newest_at is None:
        return Finding("ok", "actions", "no run died within the last day")
    return Finding(
        "red",
        "actions",
        f"{count:,} runs died within the last day, the newest at {utc_text(newest_at)}",
        "`tocsin actions --state dead` shows why; fix the cause, then `tocsin actions retry ID`",
    )


def check_notifications(failing: FailingNotifications) -> Finding:
    """Notifications that cannot be delivered, and those that were given up within the last day."""
    texts = []
    if failing.failing and failing.failing_since is not None:
        waited_s = (failing.now - failing.failing_since).total_seconds()
        texts.append(f"{failing.failing:,} cannot be delivered, the oldest for {waited_s:,.0f} s")
    if failing.failed:
        texts.append(f"{failing.failed:,} were given up within the last day")
    if not texts:
        return Finding("ok", "notifications", "all were delivered")
    return Finding(
        "red",
        "notifications",
        f"{' and '.join(texts)}; channels: {failing.channel_text}",
        "`tocsin notifications --state failing` shows why; fix the channel, delivery is retried until then",
    )


def check_retention(last: PruneReport, ages: Mapping[str, float]) -> Finding:
    """`ages` is the retention of each kind of data, in days."""
    kept = ", ".join(f"{what} {days:g} days" for what, days in ages.items())
    if last.began_at is None:
        return Finding("ok", "retention", f"{kept}; not run yet, it runs once an hour")
    gone = ", ".join(f"{count:,} of {table}" for table, count in last.removed.items()) or "nothing"
    if last.running:
        return Finding("ok", "retention", f"{kept}; running since {utc_text(last.began_at)}, removed {gone}")
    if last.ended_at is None:
        text = f"{kept}; interrupted after {utc_text(last.began_at)}, removed {gone}"
        if last.now - last.began_at > _PRUNED_WITHIN:
            return Finding("red", "retention", text, _START_CLOCK)
        return Finding("ok", "retention", f"{text}; the clock continues within an hour")
    text = f"{kept}; at {utc_text(last.ended_at)} removed {gone}"
    if last.left:
        reasons = " and ".join(sorted({left["why"] for left in last.left}))
        text += f", kept {', '.join(left['what'] for left in last.left[:5])}: {reasons}"
    if last.now - last.ended_at > _PRUNED_WITHIN:
        return Finding("red", "retention", text, _START_CLOCK)
    if any(left["why"].startswith("it failed") for left in last.left):
        return Finding("red", "retention", text, "fix the reported error, then run `tocsin prune`")
    if any("owner" in left["why"] for left in last.left):
        return Finding(
            "red", "retention", text, "run `tocsin prune` as the owner of the schema, for example from cron"
        )
    return Finding("ok", "retention", text)


def check_timers(
    parked: Sequence[str], more: bool, oldest_due: datetime | None, now: datetime
) -> list[Finding]:
    findings = []
    if parked:
        count = f"{len(parked)}{' or more' if more else ''}"
        text = f"{count} parked after repeated failures: {', '.join(parked[:5])}"
        findings.append(
            Finding(
                "red",
                "timers",
                text,
                "`tocsin timers --parked` shows the errors; fix them, then `tocsin timers retry KIND REF`",
            )
        )
    if oldest_due is not None and now - oldest_due > _OVERDUE:
        late_s = (now - oldest_due).total_seconds()
        findings.append(
            Finding("red", "timers", f"the oldest is overdue by {late_s:.0f} s", "check that a clock leads")
        )
    return findings or [Finding("ok", "timers", "none parked, none overdue")]
