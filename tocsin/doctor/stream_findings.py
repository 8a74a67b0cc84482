"""The checks of `tocsin doctor` about JetStream and its streams, from facts to findings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from nats.js.errors import ServiceUnavailableError

from timers.time_text import utc_text
from tocsin.doctor.checks import Finding

_RECENT_LETTER = timedelta(days=1)
# JetStream's error code for a cluster without a leader.
_NO_QUORUM = 10008


def jetstream_failed(error: Exception) -> Finding:
    if isinstance(error, ServiceUnavailableError) and error.err_code == _NO_QUORUM:
        text = "it has no leader, because too few servers of the cluster run"
        return Finding("red", "jetstream", text, "start the missing servers: more than half must run")
    remedy = (
        "start nats-server with JetStream (-js), or use an account that has it; in a cluster, more than half "
        "of the servers must run; after a full disk, restart nats-server"
    )
    return Finding("red", "jetstream", "it does not answer", remedy)


def check_replicas(counts: Mapping[str, int], is_clustered: bool) -> list[Finding]:
    """The number of replicas of each stream. On a cluster, one replica is lost with its server."""
    if not counts:
        return []
    listed = ", ".join(f"{stream} {count}" for stream, count in counts.items())
    single = [stream for stream, count in counts.items() if count == 1]
    if is_clustered and single:
        remedy = (
            f"raise it with `nats stream edit {single[0]} --replicas 3`, and set TOCSIN_STREAM_REPLICAS=3"
        )
        return [
            Finding("red", "replicas", f"{listed}; on a cluster, one replica is lost with its server", remedy)
        ]
    return [Finding("ok", "replicas", listed)]


def check_dead_letters(counts: Mapping[str, int], newest_at: datetime | None, now: datetime) -> Finding:
    """`newest_at` is when the message of the newest dead letter arrived."""
    if not counts:
        return Finding("ok", "dead letters", "none")
    listed = ", ".join(f"{count:,} of kind {kind}" for kind, count in counts.items())
    if newest_at is None or now - newest_at > _RECENT_LETTER:
        return Finding("info", "dead letters", f"{listed}; the newest arrived more than a day ago")
    return Finding(
        "red",
        "dead letters",
        f"{listed}; the newest arrived at {utc_text(newest_at)}",
        "`tocsin dead-letters` shows the reasons; fix the cause, then `tocsin dead-letters retry`",
    )
