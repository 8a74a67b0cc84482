"""Reads the documents in force for operators, and channels without their secrets. Reads only."""

from __future__ import annotations

import difflib
from typing import Any
from urllib.parse import urlsplit

from rules.documents.rule_book import applied_documents
from schemas.documents import DOCUMENT_KINDS, ChannelDocument
from schemas.documents.targets import TARGET_KEYS
from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.errors import InvalidInput

Row = dict[str, Any]


def check_kind(kind: str | None) -> None:
    """Refuse an unknown kind of document, with the one that may be meant."""
    kinds = list(DOCUMENT_KINDS)
    if kind is None or kind in kinds:
        return
    near = difflib.get_close_matches(kind, kinds, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(kinds)}"
    raise InvalidInput(f"unknown kind {kind!r}", remedy=remedy)


async def list_applied(connection: Connection, kind: str | None = None, name: str | None = None) -> list[Row]:
    """The documents in force, with the apply that stored them."""
    parameters = {"kind": kind, "name": name, "kinds": list(DOCUMENT_KINDS)}
    return await fetch_dicts(connection, "rules.documents/list_rules", parameters)


async def list_versions(
    connection: Connection, kind: str, name: str, *, before: int | None = None, limit: int = 100
) -> list[Row]:
    """All versions of a document, the newest first, with the applies that stored and ended them."""
    parameters = {"kind": kind, "name": name, "before": before, "limit": limit}
    return await fetch_dicts(connection, "rules.documents/list_document_versions", parameters)


async def list_channels(connection: Connection) -> list[Row]:
    """The channels. Of an address the host is shown, of a secret its reference."""
    documents = await applied_documents(connection, ChannelDocument)
    return [_channel(document.model_dump(mode="json", by_alias=True)) for document in documents]


def _channel(channel: Row) -> Row:
    (type_,) = (key for key in TARGET_KEYS if channel.get(key) is not None)
    return {
        "name": channel["name"],
        "type": type_,
        "target": _target_text(channel[type_]),
        "enabled": channel["enabled"],
        "send_resolved": channel["send_resolved"],
    }


def _target_text(target: Row) -> str:
    """`hooks.example.com`, `secret slack-url` or `ops@example.com`. A path can hold a token and is left out."""
    if "to" in target:
        return ", ".join(target["to"])
    url = target["url"]
    if isinstance(url, dict):
        return " ".join(f"{source} {name}" for source, name in url.items() if name is not None)
    return urlsplit(str(url)).netloc.rpartition("@")[2]
