"""The roles, and the subjects that each may publish and subscribe to.

A role with `is_isolated` has an account of its own in `deploy/nats/permissions.conf`. The publisher
and the workers share the account of the streams: the one writes records, the others read most of
what passes through it. They are trusted with each other's subjects as far as replies go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

JETSTREAM_API = "$JS.API"
# The kinds of records, each a subject of the record stream.
RECORD_KINDS = ("event", "action", "staleness", "health", "calc", "tombstone")
# Answers what the connected user may do. The server offers it to every account.
USER_INFO = "$SYS.REQ.USER.INFO"
_READERS = 8
# Consumers that all workers share, by stream.
_SHARED_CONSUMERS = {
    "": ("actions-high", "actions", "actions-low"),
    "-ingest": ("events",),
    "-report": ("reports",),
}


@dataclass(frozen=True, slots=True)
class NatsRole:
    name: str
    purpose: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()
    """Besides its own inbox."""
    is_isolated: bool = True

    @property
    def inbox(self) -> str:
        return inbox_of(self.name)


def is_user_name(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) is not None


def inbox_of(user: str) -> str:
    """The prefix of the reply subjects of a user: no other user can read or write there."""
    return f"_INBOX_{user}"


def reader_names(user: str) -> tuple[str, ...]:
    """The names of the temporary consumers of a user (`tocsin.core.temporary_consumer`)."""
    return tuple(f"{user}-{number}" for number in range(_READERS))


def api_prefix(namespace: str) -> str:
    """The prefix under which an isolated account has the JetStream API of the account of the streams.

    Under `$JS.API` the server answers that the account has no JetStream.
    """
    return f"{namespace}.api"


def streams_of(namespace: str) -> tuple[str, ...]:
    """The names of all streams of an instance, buckets included."""
    return (
        namespace,
        *(f"{namespace}-{name}" for name in ("data", "ingest", "report", "dead", "consumers-dead")),
        *(f"KV_{namespace}-{name}" for name in ("lease", "consumers")),
    )


def clock(namespace: str) -> NatsRole:
    key = f"$KV.{namespace}-lease.clock"
    return NatsRole(
        "clock",
        "`tocsin run clock`: holds its lease, nothing else. It writes its records to Postgres.",
        (key, *_lease(namespace), USER_INFO),
        (key,),
    )


def cdc(namespace: str) -> NatsRole:
    key = f"$KV.{namespace}-lease.cdc"
    return NatsRole(
        "cdc",
        "`tocsin run cdc`: the only running service that writes the record stream.",
        (
            *_records(namespace),
            *_api("STREAM.INFO", namespace),
            *_api("STREAM.MSG.GET", namespace),
            *_lease(namespace),
            key,
            USER_INFO,
        ),
        (key,),
        is_isolated=False,
    )


def worker(namespace: str, subjects: Sequence[str] = ()) -> NatsRole:
    """`subjects` are those of the `publish` and `dispatch` steps of the rules."""
    streams = tuple(f"{namespace}{end}" for end in ("", "-data", "-ingest", "-report", "-dead"))
    return NatsRole(
        "worker",
        "`tocsin run worker`: reads records, datapoints, external events and reports, writes dead letters, "
        "performs actions.",
        (
            *_api("STREAM.INFO", *streams),
            *_api("STREAM.MSG.GET", f"{namespace}-data"),
            *_readers(namespace, "worker"),
            # No other service has consumers of the data stream.
            *_api("CONSUMER.CREATE", f"{namespace}-data"),
            *(_api(f"CONSUMER.{verb}", f"{namespace}-data.*")[0] for verb in ("INFO", "MSG.NEXT", "DELETE")),
            *_shared_consumers(namespace),
            f"{namespace}.v1.dead.>",
            f"{namespace}.v1.datapoint.>",
            *subjects,
            USER_INFO,
        ),
        is_isolated=False,
    )


def api(namespace: str) -> NatsRole:
    return NatsRole(
        "api",
        "the HTTP API: sends datapoints, events and reports for its clients, and reads the records.",
        (
            *_producing(namespace),
            f"{namespace}.v1.report.>",
            *_reading(namespace, "api"),
            *_api("STREAM.MSG.DELETE", f"{namespace}-dead"),
            USER_INFO,
        ),
    )


def operator(namespace: str) -> NatsRole:
    dead = (f"{namespace}-dead", f"{namespace}-consumers-dead")
    return NatsRole(
        "operator",
        "people: doctor, tail, replay, send, dead letters, and removing the consumers of services.",
        (
            *_producing(namespace),
            f"{namespace}.v1.report.>",
            *_reading(namespace, "operator"),
            *_api("STREAM.MSG.DELETE", *dead),
            *_api("STREAM.PURGE", *dead),
            *_api("CONSUMER.DELETE", f"{namespace}.*"),
            USER_INFO,
        ),
    )


def producer(namespace: str, name: str, owners: Sequence[str] = ("*",)) -> NatsRole:
    """`owners` are tokens of subjects. Without any, it may send datapoints and events of every owner.

    A producer of some owners sends events on their subjects only: those on `ingest.event` name any owner.
    """
    every = "*" in owners
    return NatsRole(
        name,
        f"a producer: datapoints and events of {'every owner' if every else ', '.join(owners)}.",
        (
            *(f"{namespace}.v1.datapoint.{owner}.>" for owner in owners),
            *([f"{namespace}.v1.ingest.event"] if every else []),
            *(f"{namespace}.v1.ingest.event.{owner}" for owner in owners),
            USER_INFO,
        ),
    )


def handler(namespace: str, name: str, subjects: Sequence[str]) -> NatsRole:
    """`subjects` are those of `dispatch` steps."""
    return NatsRole(
        name,
        "a service that takes dispatched steps and reports their outcome.",
        (f"{namespace}.v1.report.>", USER_INFO),
        tuple(subjects),
    )


def consumer(namespace: str, name: str, subjects: Sequence[str] = ()) -> NatsRole:
    """A service that consumes under its own consumer name, with its own dead letters and mark.

    With `subjects` it reads only records of these. It cannot read a record by its number then, which
    would be any record.
    """
    reading = (
        *(f"{JETSTREAM_API}.CONSUMER.CREATE.{namespace}.{name}.{subject}" for subject in subjects),
        *(f"{JETSTREAM_API}.CONSUMER.CREATE.{namespace}.{name}-next.{subject}" for subject in subjects),
        *(
            _api(verb, f"{namespace}.{name}-next")[0]
            for verb in ("CONSUMER.DELETE", "CONSUMER.MSG.NEXT")
            if subjects
        ),
    ) or (
        *_api("CONSUMER.CREATE", f"{namespace}.{name}", f"{namespace}.{name}.>"),
        *_api("STREAM.MSG.GET", namespace),
    )
    return NatsRole(
        name,
        f"a service that consumes {', '.join(subjects) or 'every record'} under the name `{name}`.",
        (
            *reading,
            *_api("STREAM.INFO", namespace, f"{namespace}-consumers-dead", f"KV_{namespace}-consumers"),
            *(
                _api(f"CONSUMER.{verb}", f"{namespace}.{name}")[0]
                for verb in ("INFO", "DELETE", "MSG.NEXT", "UNPIN")
            ),
            f"$JS.ACK.{namespace}.{name}.>",
            f"{namespace}.dead.{name}.*",
            f"$KV.{namespace}-consumers.{name}",
            *_api("STREAM.MSG.GET", f"KV_{namespace}-consumers"),
            USER_INFO,
        ),
    )


def admin(namespace: str) -> NatsRole:
    streams = streams_of(namespace)
    return NatsRole(
        "admin",
        "`tocsin streams create`, `tocsin cdc rebuild` and `tocsin forget`: creates, changes and rebuilds the "
        "streams, and erases the data of an owner. "
        "Keep its password away from the hosts of the services.",
        (
            *_records(namespace),
            *_api("STREAM.INFO", *streams),
            *_api("STREAM.CREATE", *streams),
            *_api("STREAM.UPDATE", *streams),
            *_api("STREAM.DELETE", namespace),
            *_api("STREAM.MSG.GET", *streams),
            *_api("STREAM.PURGE", f"{namespace}-data"),
            *_api("STREAM.MSG.DELETE", f"{namespace}-dead", f"{namespace}-consumers-dead"),
            *_api("CONSUMER.LIST", namespace),
            *_api("INFO"),
            USER_INFO,
        ),
        is_isolated=False,
    )


def component_roles(namespace: str, published: Sequence[str] = ()) -> tuple[NatsRole, ...]:
    """The roles of Tocsin itself. `published` are subjects of the rules."""
    return (
        clock(namespace),
        cdc(namespace),
        worker(namespace, published),
        api(namespace),
        operator(namespace),
        admin(namespace),
    )


def protected_subjects(namespace: str) -> tuple[str, ...]:
    """What no user but the role that owns it may publish, for users that may publish anything else."""
    changing = (
        "CREATE",
        "UPDATE",
        "DELETE",
        "PURGE",
        "RESTORE",
        "SNAPSHOT",
        "PEER.REMOVE",
        "LEADER.STEPDOWN",
    )
    return (
        *_records(namespace),
        f"{namespace}.v1.data.>",
        f"{namespace}.v1.calculated.>",
        f"$KV.{namespace}-lease.>",
        *(f"{JETSTREAM_API}.STREAM.{verb}.>" for verb in changing),
        f"{JETSTREAM_API}.STREAM.MSG.DELETE.{namespace}",
        f"{JETSTREAM_API}.STREAM.MSG.DELETE.{namespace}-data",
        f"{JETSTREAM_API}.STREAM.MSG.DELETE.{namespace}-ingest",
        f"{JETSTREAM_API}.STREAM.MSG.DELETE.{namespace}-report",
        f"{JETSTREAM_API}.CONSUMER.PAUSE.>",
    )


def _records(namespace: str) -> tuple[str, ...]:
    return tuple(f"{namespace}.v1.{kind}.>" for kind in RECORD_KINDS)


def _lease(namespace: str) -> tuple[str, ...]:
    bucket = f"KV_{namespace}-lease"
    return (*_api("STREAM.INFO", bucket), *_api("STREAM.MSG.GET", bucket))


def _producing(namespace: str) -> tuple[str, ...]:
    events = f"{namespace}.v1.ingest.event"
    return (f"{namespace}.v1.datapoint.*.>", events, f"{events}.*")


def _readers(namespace: str, user: str) -> tuple[str, ...]:
    names = tuple(f"{namespace}.{name}" for name in reader_names(user))
    return (
        *_api("CONSUMER.CREATE", *names),
        *_api("CONSUMER.MSG.NEXT", *names),
        *_api("CONSUMER.DELETE", *names),
        *_api("CONSUMER.INFO", f"{namespace}.*"),
    )


def _reading(namespace: str, user: str) -> tuple[str, ...]:
    streams = streams_of(namespace)
    return (
        *_api("INFO"),
        *_api("STREAM.INFO", *streams),
        *_api("STREAM.MSG.GET", *streams),
        *_api("CONSUMER.LIST", *streams),
        *_api("CONSUMER.INFO", *(f"{stream}.*" for stream in streams if stream != namespace)),
        *_readers(namespace, user),
    )


def _shared_consumers(namespace: str) -> tuple[str, ...]:
    subjects: list[str] = []
    for end, names in _SHARED_CONSUMERS.items():
        for name in names:
            own = f"{namespace}{end}.{name}"
            subjects += _api("CONSUMER.DURABLE.CREATE", own)
            subjects += _api("CONSUMER.MSG.NEXT", own)
            subjects.append(f"$JS.ACK.{own}.>")
    return tuple(subjects)


def _api(verb: str, *places: str) -> tuple[str, ...]:
    return tuple(f"{JETSTREAM_API}.{verb}.{place}" for place in places) or (f"{JETSTREAM_API}.{verb}",)
