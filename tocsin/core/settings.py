"""Every knob of Tocsin, read from `TOCSIN_*` variables, each with its unit, default and reason.

Guarantee: a value out of range is refused at start-up by name (see `read_settings`), never found out by
a service that misbehaves an hour later. The unit is part of the name (`_s`, `_ms`, `_h`).
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args, get_origin

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from tocsin.core.allow_list import AllowList
from tocsin.core.errors import InvalidInput
from tocsin.core.listen_address import ListenAddress

_TEXTS = {
    "nats_inbox": "letters, digits, '_' and '-', with dots between words",
    "namespace": "1 to 32 letters, digits, '_' and '-'",
}


def _allow_list(text: str) -> str:
    try:
        AllowList.parse(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return text


def _listen_address(text: str) -> str:
    try:
        if text:
            ListenAddress.parse(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return text


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="TOCSIN_", extra="ignore", frozen=True)

    postgres: str = Field(
        default="",
        description="libpq URL or key=value string of the database; `tocsin up` brings its own",
    )
    nats: str = Field(
        default="",
        description="NATS URL, several with commas, a password percent-encoded; `tocsin up` brings its own",
    )
    nats_inbox: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")] = Field(
        default="_INBOX",
        description="first tokens of reply subjects: one of its own per user, so that no other user reads answers",
    )
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")] = Field(
        default="tocsin",
        description="first token of every subject, name of the stream and the lease bucket: one per shard",
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="auto: console on a terminal, JSON lines elsewhere",
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    metrics: Annotated[str, AfterValidator(_listen_address)] = Field(
        default="",
        description="host:port where services answer /metrics and /healthz, such as 127.0.0.1:9464; empty: nowhere",
    )

    lease_ttl_s: Annotated[float, Field(ge=1.0, le=60.0)] = Field(
        default=2.0,
        description="seconds until a silent leader is replaced; NATS expires keys no faster than 1 s",
    )
    tick_ms: Annotated[float, Field(ge=1.0, le=1000.0)] = Field(
        default=20.0,
        description="longest sleep of the clock in ms: a timer armed for the near future is seen this late",
    )
    fire_batch: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=1000,
        description="most timers of one kind fired in one transaction: larger batches hold the log longer",
    )
    max_failures: Annotated[int, Field(ge=1, le=100)] = Field(
        default=5,
        description="a timer that fails alone this often is parked for a person to look at",
    )
    cdc_chunk: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=500,
        description="messages per acknowledged chunk; one acknowledgement proves the whole chunk",
    )
    cdc_in_flight: Annotated[int, Field(ge=1, le=4000)] = Field(
        default=4000,
        description="most unacknowledged messages; the server's own queue holds 10,000",
    )
    cdc_poll_ms: Annotated[float, Field(ge=10.0, le=60_000.0)] = Field(
        default=200.0,
        description="longest wait of the publisher in ms when no NOTIFY arrives (a pooler may swallow it)",
    )
    cdc_audit_s: Annotated[float, Field(ge=0.05, le=3600.0)] = Field(
        default=10.0,
        description="seconds between two comparisons of the log with a sample of the stream",
    )
    stream_max_age_h: Annotated[float, Field(ge=1.0, le=876_000.0)] = Field(
        default=168.0,
        description="hours that JetStream keeps messages; the table keeps them independently",
    )
    stream_replicas: Annotated[int, Field(ge=1, le=5)] = Field(
        default=1,
        description="replicas of the stream and the lease bucket: 3 on a cluster",
    )
    worker_batch: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=200,
        description="messages a worker fetches at once",
    )
    worker_concurrency: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=32,
        description="steps of actions that a worker performs at once: a slow one holds up no other",
    )
    worker_ack_wait_s: Annotated[float, Field(ge=1.0, le=3600.0)] = Field(
        default=30.0,
        description="seconds until a message of a silent worker is given to another one",
    )
    egress_allow: Annotated[str, AfterValidator(_allow_list)] = Field(
        default="",
        description="internal hosts, host:port and networks that deliveries may reach, with commas; "
        "all other private, loopback, link-local and metadata addresses are refused",
    )
    egress_ca: str = Field(
        default="",
        description="file with certificates of authorities (PEM) that deliveries trust beside the system's",
    )

    data_partitions: Annotated[int, Field(ge=1, le=256)] = Field(
        default=8,
        description="partitions of the data lane, fixed when it is first used: at most as many workers share it",
    )
    data_max_age_h: Annotated[float, Field(ge=1.0, le=876_000.0)] = Field(
        default=72.0,
        description="hours that JetStream keeps datapoints: the longest outage of all workers without a loss",
    )
    datapoint_retention_d: Annotated[float, Field(ge=1.0, le=36_500.0)] = Field(
        default=30.0,
        description="days that datapoints are kept; one whose ts is older when it arrives is set aside",
    )
    record_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=90.0,
        description="days that the record log is kept, and what hangs on it; how far back a backtest can reach",
    )
    keep_events_per_rule: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=100,
        description="newest events of each rule that outlive the log's retention",
    )
    dead_action_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=30.0,
        description="days that an action that failed can be tried again, at least: the log is kept for it",
    )
    event_key_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=30.0,
        description="days that the id of an event handed in is known, at least; while the log has it, in any case",
    )
    audit_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=730.0,
        description="days that acts of people and services are kept",
    )
    series_retention_d: Annotated[float, Field(ge=1.0, le=36_500.0)] = Field(
        default=365.0,
        description="days of silence after which a series is forgotten; not before its datapoints and records are",
    )
    datapoint_future_s: Annotated[float, Field(ge=0.0, le=86_400.0)] = Field(
        default=300.0,
        description="seconds that the ts of a datapoint may lie after its arrival; beyond, it is set aside",
    )

    severities: str = Field(
        default="info,warning,average,high,critical,disaster",
        description="severity levels from the lowest; add new ones at the end, records keep their number",
    )

    @property
    def stream(self) -> str:
        return self.namespace

    @property
    def data_stream(self) -> str:
        return f"{self.namespace}-data"

    @property
    def report_stream(self) -> str:
        return f"{self.namespace}-report"

    @property
    def ingest_stream(self) -> str:
        return f"{self.namespace}-ingest"

    @property
    def dead_stream(self) -> str:
        return f"{self.namespace}-dead"

    @property
    def lease_bucket(self) -> str:
        return f"{self.namespace}-lease"

    @property
    def subjects(self) -> str:
        """The prefix of every subject; `v1` is the version promised in docs/consuming.md."""
        return f"{self.namespace}.v1"


def read_settings(**overrides: object) -> Settings:
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as invalid:
        raise InvalidInput("; ".join(_sentence(one) for one in invalid.errors(include_url=False))) from None


def _sentence(problem: ErrorDetails) -> str:
    name, value = str(problem["loc"][0]), problem["input"]
    message = (
        problem["msg"].removeprefix("Value error, ") if problem["type"] == "value_error" else _write(name)
    )
    separator = "" if message.startswith(f"{value!r} ") else f"{value!r}: "
    return f"TOCSIN_{name.upper()}={separator}{message}"


def _write(name: str) -> str:
    """What is accepted, from the field itself."""
    field = Settings.model_fields[name]
    if get_origin(field.annotation) is Literal:
        return f"write one of {', '.join(get_args(field.annotation))}"
    if name in _TEXTS:
        return f"write {_TEXTS[name]}"
    least = next(bound.ge for bound in field.metadata if hasattr(bound, "ge"))
    most = next(bound.le for bound in field.metadata if hasattr(bound, "le"))
    number = "a whole number" if field.annotation is int else "a number"
    return f"write {number} from {least:,.12g} to {most:,.12g} ({field.description})"
