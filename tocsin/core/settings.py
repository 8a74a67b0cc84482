"""All settings of Tocsin, read from `TOCSIN_*` variables, each with its unit, default and meaning.

Guarantee: a value out of range is rejected at start-up by name (see `read_settings`), and not found
out by a service that misbehaves an hour later. The unit is part of the name (`_s`, `_ms`, `_h`,
`_d`). docs/operating.md has the same descriptions. A setting may also be a file (`setting_files.py`).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import unquote

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from tocsin.core.api_settings import check_listen_address
from tocsin.core.errors import InvalidInput
from tocsin.core.nats_settings import NatsSettings
from tocsin.core.quota_text import check_quotas
from tocsin.core.setting_checks import allow_list_setting, bindings_setting, console_url_setting
from tocsin.core.setting_files import SettingFiles

_TEXTS = {
    "nats_api": "letters, digits, '$', '_' and '-', with dots between words",
    "nats_inbox": "letters, digits, '_' and '-', with dots between words",
    "metrics_token": "at most 512 printable ASCII characters without white space",
    "namespace": "1 to 32 letters, digits, '_' and '-'",
}

SECRET_PREFIX = "TOCSIN_SECRET_"  # noqa: S105 the name of a variable
CREDENTIAL_VARIABLES = (
    *("TOCSIN_POSTGRES", "TOCSIN_NATS", "TOCSIN_NATS_PASSWORD", "TOCSIN_METRICS_TOKEN", "TOCSIN_TOKEN"),
)
# Hiding a shorter password would make logs unreadable.
_MIN_HIDDEN_LENGTH = 4


PREFIX = "TOCSIN_"
# The data directory of `tocsin up`, the API of commands, files with settings, the build, secrets of rules,
# variables of the tests.
OTHER_VARIABLE = re.compile(
    "TOCSIN_(DATA$|URL$|TOKEN$|TOKEN_FILE$|SETTINGS_DIR$|ASSETS$|SECRET_|TEST_|FAULT_)"
)


class Settings(NatsSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    postgres: str = Field(
        default="",
        repr=False,
        description="libpq URL or key=value string of the database. `tocsin up` starts its own server.",
    )
    postgres_roles: bool = Field(
        default=False,
        description="Whether each service logs in to Postgres as its own role (`tocsin_clock`, `tocsin_cdc`, "
        "`tocsin_worker`, `tocsin_api`) instead of the user in TOCSIN_POSTGRES. `tocsin up` does.",
    )
    nats: str = Field(
        default="",
        repr=False,
        description="NATS URL, or several separated by commas. Percent-encode the password. `tocsin up` starts its "
        "own server.",
    )
    nats_inbox: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")] = Field(
        default="_INBOX",
        description="Prefix of reply subjects. Use one per NATS user, so that no other user can read the replies.",
    )
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")] = Field(
        default="tocsin",
        description="First token of every subject, and name of the record stream and of the buckets: one per instance",
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="`console`, `json`, or `auto`: console on a terminal, JSON lines elsewhere",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="`debug`, `info`, `warning` or `error`",
    )
    metrics: Annotated[str, AfterValidator(check_listen_address)] = Field(
        default="",
        description="host:port of `/metrics` and `/healthz`, for example `127.0.0.1:9464`. Empty: none.",
    )
    metrics_token: Annotated[str, Field(pattern=r"^[!-~]{0,512}$")] = Field(
        default="",
        repr=False,
        description="Bearer token that `/metrics` and the reason in `/healthz` require. Empty: none.",
    )

    lease_ttl_s: Annotated[float, Field(ge=1.0, le=60.0)] = Field(
        default=2.0,
        description="Seconds until a leader that does not renew its lease is replaced. NATS expires keys no faster "
        "than 1 s.",
    )
    tick_ms: Annotated[float, Field(ge=1.0, le=1000.0)] = Field(
        default=20.0,
        description="Longest sleep of the clock in ms. A timer that is armed for the near future may be noticed this "
        "late.",
    )
    fire_batch: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=1000,
        description="Largest number of timers of one kind in one transaction. Larger batches hold the lock of the log "
        "longer.",
    )
    max_failures: Annotated[int, Field(ge=1, le=100)] = Field(
        default=5,
        description="Failures of a single timer after which it is parked",
    )
    cdc_chunk: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=500,
        description="Messages per acknowledged chunk. One acknowledgement confirms the whole chunk.",
    )
    cdc_in_flight: Annotated[int, Field(ge=1, le=4000)] = Field(
        default=4000,
        description="Largest number of unacknowledged messages. The queue of the server holds 10,000.",
    )
    cdc_poll_ms: Annotated[float, Field(ge=10.0, le=60_000.0)] = Field(
        default=200.0,
        description="Longest wait of the publisher in ms if a NOTIFY is lost",
    )
    cdc_check_s: Annotated[float, Field(ge=0.05, le=3600.0)] = Field(
        default=10.0,
        description="Seconds between two checks of the stream against the log",
    )
    stream_max_age_h: Annotated[float, Field(ge=1.0, le=876_000.0)] = Field(
        default=168.0,
        description="Hours that JetStream keeps records. The database keeps them independently.",
    )
    stream_replicas: Annotated[int, Field(ge=1, le=5)] = Field(
        default=1,
        description="Replicas of the streams and of the lease bucket: 3 on a cluster",
    )
    worker_batch: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=200,
        description="Messages that a worker fetches at once",
    )
    worker_concurrency: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=32,
        description="Steps that a worker performs concurrently",
    )
    target_concurrency: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=8,
        description="Deliveries of a worker to one target at once, at most half of `TOCSIN_WORKER_CONCURRENCY`",
    )
    worker_ack_wait_s: Annotated[float, Field(ge=1.0, le=3600.0)] = Field(
        default=30.0,
        description="Seconds until a message of a worker that does not respond is given to another",
    )
    egress_allow: Annotated[str, AfterValidator(allow_list_setting)] = Field(
        default="",
        description="Internal hosts, host:port and networks that deliveries may reach, separated by commas",
    )
    egress_ca: str = Field(
        default="",
        description="PEM file with certificate authorities that deliveries trust in addition to those of the system",
    )

    secrets_dir: str = Field(
        default="",
        description="Directory with one file per secret, named as in `{secret: NAME}`. Links are not followed.",
    )
    secrets_bound: Annotated[str, AfterValidator(bindings_setting)] = Field(
        default="",
        description="Hosts that may receive secrets, separated by commas: `name@host`, or `name@host/channel`",
    )

    data_partitions: Annotated[int, Field(ge=1, le=256)] = Field(
        default=8,
        description="Partitions of the data lane, fixed when it is first used. At most this many workers share it.",
    )
    data_max_age_h: Annotated[float, Field(ge=1.0, le=876_000.0)] = Field(
        default=72.0,
        description="Hours that JetStream keeps datapoints: the longest outage of all workers without a loss",
    )
    datapoint_retention_d: Annotated[float, Field(ge=1.0, le=36_500.0)] = Field(
        default=30.0,
        description="Days that datapoints are kept. Datapoints with an older `ts` are rejected.",
    )
    record_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=90.0,
        description="Days that the record log is kept, and the rows that belong to it. A backtest reaches this far "
        "back.",
    )
    keep_events_per_rule: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=100,
        description="Newest events of each rule that outlive the log",
    )
    dead_action_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=30.0,
        description="Days that a dead run can be retried, at least",
    )
    event_key_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=30.0,
        description="Days that the id of an external event is known, at least",
    )
    audit_retention_d: Annotated[float, Field(ge=0.0, le=36_500.0)] = Field(
        default=730.0,
        description="Days that audit entries are kept",
    )
    series_retention_d: Annotated[float, Field(ge=1.0, le=36_500.0)] = Field(
        default=365.0,
        description="Days without data after which a series is removed",
    )
    datapoint_future_s: Annotated[float, Field(ge=0.0, le=86_400.0)] = Field(
        default=300.0,
        description="Seconds that `ts` may lie after the arrival. Later datapoints are rejected.",
    )

    quota_series: Annotated[int, Field(ge=0, le=100_000_000)] = Field(
        default=10_000,
        description="Series of one owner. New series beyond it are rejected. 0: no limit, as in all quotas.",
    )
    quota_all_series: Annotated[int, Field(ge=0, le=1_000_000_000)] = Field(
        default=1_000_000,
        description="Series of all owners together, by the estimate of Postgres",
    )
    quota_datapoints: Annotated[int, Field(ge=0, le=10**12)] = Field(
        default=600_000,
        description="Datapoints of one owner within a minute",
    )
    quota_bytes: Annotated[int, Field(ge=0, le=10**15)] = Field(
        default=67_108_864,
        description="Bytes of the messages with datapoints of one owner within a minute",
    )
    quota_events: Annotated[int, Field(ge=0, le=10**12)] = Field(
        default=6_000,
        description="External events of one owner within a minute, for each worker",
    )
    quotas: Annotated[str, AfterValidator(check_quotas)] = Field(
        default="",
        description="Other quotas for some owners, separated by commas: `plant-* series 50000, load-test events 0`",
    )
    dead_letters_mb: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=256,
        description="Megabytes of dead letters in NATS. Beyond, new ones keep only the first bytes of their message.",
    )

    console_url: Annotated[str, AfterValidator(console_url_setting)] = Field(
        default="",
        description="Address of the console. Messages about alarms link to it; without it they have no link.",
    )
    severities: str = Field(
        default="info,warning,average,high,critical,disaster",
        description="Severity levels from the lowest. Add new levels at the end: records store the number.",
    )

    _secret_variables: dict[str, str] = PrivateAttr(default_factory=dict)
    _credentials_dir: str = PrivateAttr(default="")

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *_: Any, **sources: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return sources["init_settings"], sources["env_settings"], SettingFiles(settings_cls)

    def model_post_init(self, _: Any) -> None:
        """Keep the secrets of the environment, so that `forget_credentials` can remove them there."""
        self._secret_variables = _secrets_of_environment()
        self._credentials_dir = os.environ.get("CREDENTIALS_DIRECTORY", "")

    @property
    def secret_variables(self) -> Mapping[str, str]:
        """Values of secrets by their variables, as the environment had them when this was created."""
        return self._secret_variables

    @property
    def credentials_dir(self) -> str:
        """The directory of `LoadCredential` in a unit of systemd."""
        return self._credentials_dir

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
    def source(self) -> str:
        """The `source` attribute of every record."""
        return f"tocsin/{self.namespace}"

    @property
    def subjects(self) -> str:
        """The prefix of every subject. `v1` is the version that docs/consuming.md promises."""
        return f"{self.namespace}.v1"


def _secrets_of_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(SECRET_PREFIX)}


def forget_credentials() -> None:
    """Remove the credentials from the environment of this process, which children inherit."""
    for name in list(os.environ):
        if name in CREDENTIAL_VARIABLES or name.startswith(SECRET_PREFIX):
            del os.environ[name]


def credentials_of(settings: Settings) -> set[str]:
    """Passwords in the addresses of the servers, as they are written and decoded."""
    found = {os.environ.get("PGPASSWORD", ""), *_postgres_passwords(settings.postgres)}
    found |= {settings.metrics_token, settings.nats_password, *settings.secret_variables.values()}
    for url in settings.nats.split(","):
        userinfo = url.rpartition("@")[0].rpartition("//")[2]
        # A user without a password is a token.
        found.add(userinfo.partition(":")[2] or userinfo)
    found |= {unquote(password) for password in found}
    return {password for password in found if len(password) >= _MIN_HIDDEN_LENGTH}


def _postgres_passwords(conninfo: str) -> set[str]:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    as_written = conninfo.partition("//")[2].rpartition("@")[0].partition(":")[2]
    try:
        parsed = conninfo_to_dict(conninfo)
    except ProgrammingError:
        return {as_written}
    return {as_written, str(parsed.get("password") or ""), str(parsed.get("sslpassword") or "")}


def unknown_variables() -> dict[str, str]:
    """Variables that look like settings and are none, each with the setting that may be meant, or
    an empty text."""
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    names = [
        name
        for name in os.environ
        if name.startswith(PREFIX) and name.upper() not in known and not OTHER_VARIABLE.match(name)
    ]
    return {name: next(iter(difflib.get_close_matches(name, known, n=1)), "") for name in sorted(names)}


def read_settings(**overrides: object) -> Settings:
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as invalid:
        raise InvalidInput(
            "; ".join(_sentence(error) for error in invalid.errors(include_url=False))
        ) from None


def _sentence(error: ErrorDetails) -> str:
    name, value = str(error["loc"][0]), error["input"]
    message = error["msg"].removeprefix("Value error, ") if error["type"] == "value_error" else _write(name)
    separator = "" if message.startswith(f"{value!r} ") else f"{value!r}: "
    return f"TOCSIN_{name.upper()}={separator}{message}"


def _write(name: str) -> str:
    """The accepted values, from the field itself."""
    field = Settings.model_fields[name]
    if get_origin(field.annotation) is Literal:
        return f"write one of {', '.join(get_args(field.annotation))}"
    if name in _TEXTS:
        return f"write {_TEXTS[name]}"
    if field.annotation is bool:
        return "write true or false"
    least = next(bound.ge for bound in field.metadata if hasattr(bound, "ge"))
    most = next(bound.le for bound in field.metadata if hasattr(bound, "le"))
    description = str(field.description)
    description = description[0].lower() + description[1:].rstrip(".")
    number = "a whole number" if field.annotation is int else "a number"
    return f"write {number} from {least:,.12g} to {most:,.12g} ({description})"
