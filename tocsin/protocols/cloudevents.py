"""CloudEvents 1.0 over HTTP as events: binary, structured and batched.

The idempotency key is made of `source` and `id`, which together identify a CloudEvent. A type may
have dots and slashes there, which become `-` here. The owner is the extension attribute `owner`, or
the `subject`, or the `source`. Data that is no JSON object is the field `data` of the payload.

Guarantee: one event of a batch that cannot be used is a problem with its reason, and the others are
used. Bytes, count and depth are bounded.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from pydantic_core import from_json

from schemas.values.severities import severities
from tocsin.core.errors import InvalidInput

MAX_CLOUDEVENTS_BYTES = 1024 * 1024
MAX_CLOUDEVENTS = 500
STRUCTURED = "application/cloudevents+json"
BATCHED = "application/cloudevents-batch+json"
_PREFIX = "ce-"
_REQUIRED = ("id", "source", "type", "specversion")
_NOT_IN_TYPE = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_KEY = 256
_MAX_ATTRIBUTE = 1_024


def read_cloudevents(headers: Mapping[str, str], body: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """The fields of the `IngestEvent` of each event, and the problems of the others.

    `headers` has lower-case names.
    """
    if len(body) > MAX_CLOUDEVENTS_BYTES:
        raise InvalidInput(f"the body has {len(body)} bytes", remedy=f"send at most {MAX_CLOUDEVENTS_BYTES}")
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == BATCHED:
        return _read_batch(body)
    if media_type == STRUCTURED:
        return [_from_structured(_json(body))], []
    if f"{_PREFIX}specversion" in headers:
        return [_from_binary(headers, media_type, body)], []
    raise InvalidInput(
        "the request is no CloudEvent",
        remedy=f"send the headers ce-id, ce-source, ce-type and ce-specversion, or a body of type {STRUCTURED}",
    )


def _read_batch(body: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    entries = _json(body)
    if not isinstance(entries, list) or len(entries) > MAX_CLOUDEVENTS:
        raise InvalidInput(
            "the batch is not a list, or too long", remedy=f"send a list of at most {MAX_CLOUDEVENTS} events"
        )
    events, problems = [], []
    for number, entry in enumerate(entries):
        try:
            events.append(_from_structured(entry))
        except InvalidInput as invalid:
            problems.append(f"[{number}] {invalid}")
    return events, problems


def _from_structured(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise InvalidInput("a CloudEvent is a JSON object", remedy="send one")
    attributes = {
        name: str(value)
        for name, value in entry.items()
        if name not in ("data", "data_base64") and value is not None and not isinstance(value, dict | list)
    }
    data = entry.get("data")
    if "data_base64" in entry:
        data = _data_of_bytes(_decoded(entry["data_base64"]), attributes.get("datacontenttype", ""))
    return _event(attributes, data)


def _from_binary(headers: Mapping[str, str], media_type: str, body: bytes) -> dict[str, Any]:
    attributes = {
        name.removeprefix(_PREFIX): unquote(value)
        for name, value in headers.items()
        if name.startswith(_PREFIX)
    }
    return _event(attributes, _data_of_bytes(body, media_type) if body else None)


def _data_of_bytes(body: bytes, media_type: str) -> Any:
    if media_type in ("", "application/json") or media_type.endswith("+json"):
        return _json(body)
    try:
        return body.decode()
    except UnicodeDecodeError:
        return base64.b64encode(body).decode()


def _event(attributes: dict[str, str], data: Any) -> dict[str, Any]:
    missing = [name for name in _REQUIRED if not attributes.get(name)]
    if missing:
        raise InvalidInput(
            f"the CloudEvent has no {' and no '.join(missing)}", remedy="send all required attributes"
        )
    if attributes["specversion"] != "1.0":
        raise InvalidInput(
            f"specversion {attributes['specversion'][:20]!r} is not known", remedy="send CloudEvents 1.0"
        )
    long = [name for name, value in attributes.items() if len(value) > _MAX_ATTRIBUTE]
    if long:
        raise InvalidInput(
            f"the attribute {long[0][:40]!r} is too long", remedy=f"use at most {_MAX_ATTRIBUTE} characters"
        )
    payload = data if isinstance(data, dict) else {} if data is None else {"data": data}
    severity = attributes.get("severity", "")
    return {
        "id": _key(attributes["source"], attributes["id"]),
        "type": _NOT_IN_TYPE.sub("-", attributes["type"]).strip("-") or "event",
        "owner": attributes.get("owner") or attributes.get("subject") or attributes["source"],
        "payload": payload,
        "ts": attributes.get("time"),
        "severity": severity if severity in severities() else None,
    }


def _key(source: str, id: str) -> str:
    # The length keeps two pairs with the same joined text apart.
    key = f"cloudevent/{len(source)}/{source}/{id}"
    return key if len(key) <= _MAX_KEY else f"cloudevent/{hashlib.sha256(key.encode()).hexdigest()}"


def _json(body: bytes) -> Any:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"the body is not JSON ({error})", remedy="send JSON in UTF-8") from None


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise InvalidInput("data_base64 is not base64", remedy="encode it, or send data") from None
