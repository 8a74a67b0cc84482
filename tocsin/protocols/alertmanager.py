"""Alertmanager v2: alerts of Prometheus become events, and alarms are shown as alerts.

An alert has one event when it fires and one when it is resolved, of type `prometheus-alert`.
Prometheus sends an alert again every minute: the idempotency key is made of its labels, its start and
its status, so the repetitions are the same event. A rule over these events opens the alarms, as over
any other event, so a backtest replays them.

Guarantee: at most `MAX_ALERTS` alerts of bounded size are read. One that cannot be used is a problem
with its reason, and the others are used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from schemas.error_text import error_text
from schemas.values.severities import severities
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text
from tocsin.protocols.alertmanager_matchers import LabelMatcher

ALERT_EVENT = "prometheus-alert"
MAX_ALERTS = 1_000
MAX_ALERTS_BYTES = 2 * 1024 * 1024
_ALERT_NAME = "alertname"

_LabelText = Annotated[str, Field(max_length=1_024)]
_AnnotationText = Annotated[str, Field(max_length=8_192)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True)


class PostedAlert(_Message):
    """An alert as Prometheus sends it."""

    labels: Annotated[dict[_LabelText, _LabelText], Field(min_length=1, max_length=64)]
    annotations: Annotated[dict[_LabelText, _AnnotationText], Field(max_length=64)] = {}
    starts_at: AwareDatetime | None = None
    ends_at: AwareDatetime | None = None
    generator_url: Annotated[str, Field(alias="generatorURL", max_length=2_048)] = ""

    @property
    def name(self) -> str:
        return self.labels.get(_ALERT_NAME, "")

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.labels)

    def is_resolved(self, now: datetime) -> bool:
        return self.ends_at is not None and self.ends_at <= now

    def event(self, owner: str, now: datetime) -> dict[str, Any]:
        """The fields of the `IngestEvent` of this alert at `now`."""
        resolved = self.is_resolved(now)
        starts_at = self.starts_at or now
        status = "resolved" if resolved else "firing"
        severity = self.labels.get("severity", "")
        payload = {
            "status": status,
            "alertname": self.name,
            "fingerprint": self.fingerprint,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "starts_at": instant_text(starts_at),
            "generator_url": self.generator_url,
        }
        at = self.ends_at if resolved and self.ends_at is not None else starts_at
        return {
            "id": f"alertmanager/{self.fingerprint}/{instant_text(starts_at)}/{status}",
            "type": ALERT_EVENT,
            "owner": owner,
            "payload": payload,
            "ts": instant_text(at),
            "severity": severity if severity in severities() else None,
        }


class PostedMatcher(_Message):
    name: Annotated[str, Field(min_length=1, max_length=512)]
    value: Annotated[str, Field(max_length=512)]
    is_regex: bool
    is_equal: bool = True

    @property
    def matcher(self) -> LabelMatcher:
        return LabelMatcher(self.name, self.value, self.is_regex, self.is_equal)


class PostedSilence(_Message):
    """A silence as amtool, Karma and Grafana send it."""

    id: Annotated[str, Field(max_length=64)] | None = None
    matchers: Annotated[list[PostedMatcher], Field(min_length=1, max_length=32)]
    starts_at: AwareDatetime
    ends_at: AwareDatetime
    created_by: Annotated[str, Field(max_length=128)] = ""
    comment: Annotated[str, Field(max_length=1_000)] = ""


_ALERT = TypeAdapter(PostedAlert)


def read_alerts(body: bytes) -> tuple[list[PostedAlert], list[str]]:
    """The alerts of a body, and the problems of the others."""
    if len(body) > MAX_ALERTS_BYTES:
        raise InvalidInput(f"the body has {len(body)} bytes", remedy=f"send at most {MAX_ALERTS_BYTES}")
    try:
        entries = from_json(body)
    except ValueError as error:
        raise InvalidInput(f"the body is not JSON ({error})", remedy="send a list of alerts") from None
    if not isinstance(entries, list) or len(entries) > MAX_ALERTS:
        raise InvalidInput(
            "the body is not a list of alerts, or too long", remedy=f"send a list of at most {MAX_ALERTS}"
        )
    alerts, problems = [], []
    for number, entry in enumerate(entries):
        try:
            alerts.append(_ALERT.validate_python(entry))
        except ValidationError as invalid:
            problems.append(f"[{number}] {error_text(invalid)}")
    return alerts, problems


def read_silence(body: bytes) -> PostedSilence:
    try:
        return PostedSilence.model_validate_json(body)
    except ValidationError as invalid:
        raise InvalidInput(f"the silence is not accepted: {error_text(invalid)}") from None


def fingerprint(labels: Mapping[str, str]) -> str:
    """16 hexadecimal digits of the labels, as clients expect. Alertmanager computes others."""
    digest = hashlib.sha256()
    for name in sorted(labels):
        for text in (name, labels[name]):
            digest.update(len(text.encode()).to_bytes(4, "big") + text.encode())
    return digest.hexdigest()[:16]
