"""Series, heartbeats, systems, timers, documents, tokens and the doctor over HTTP, and what producers send."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from clock.time_source import wall_now
from rules.alarms.heartbeats import HeartbeatRow
from timers.working_set import check_kind
from tocsin.cli.options import instant_option
from tocsin.cli.remote.api_client import ApiClient, Row, with_instants
from tocsin.core.errors import NotFound, Refused
from tocsin.doctor.checks import Finding

if TYPE_CHECKING:
    from rules.delivery.outcome import DeliveryOutcome
    from tocsin.api.access.tokens import NewToken
    from tocsin.core.settings import Settings

_SERIES = (
    *("owner", "key", "value", "ts", "labels", "arrived_at", "first_arrived_at", "freshness"),
    *("stale_since", "deadline", "cause", "datapoint_type"),
)
_TIMER = (
    *("kind", "ref", "key", "fire_at", "nominal_at", "generation", "attempts", "last_error", "parked_at"),
    *("schedule", "cause"),
)


async def list_series(
    api: ApiClient,
    owner: str | None,
    key: str | None,
    type: str | None,
    stale: bool,
    unknown: bool,
    limit: int,
) -> tuple[datetime, list[Row]]:
    if unknown:
        raise Refused("--unknown does not work over HTTP", remedy="unset TOCSIN_URL, and set TOCSIN_POSTGRES")
    items = await api.items("/v1/series", limit, owner=owner, key=key, type=type, stale=stale)
    return wall_now(), [{name: item[name] for name in _SERIES} for item in items]


async def list_heartbeats(
    api: ApiClient, name: str | None, owner: str | None
) -> tuple[datetime, list[HeartbeatRow]]:
    answer = with_instants(await api.get("/v1/heartbeats", name=name, owner=owner))
    rows = []
    for item in map(with_instants, answer["items"]):
        late_by_s = item.pop("late_by_s")
        item["late_by"] = None if late_by_s is None else timedelta(seconds=late_by_s)
        rows.append(HeartbeatRow(**item))
    return answer["now"], rows


async def list_systems(api: ApiClient) -> tuple[datetime, list[Row]]:
    return wall_now(), await api.items("/v1/systems", 500)


async def list_timers(
    api: ApiClient, kind: str | None, parked: bool, limit: int
) -> tuple[datetime, list[Row]]:
    if kind is not None:
        check_kind(kind)
    page = await api.get("/v1/timers", kind=kind, parked=parked, limit=min(limit, 500))
    rows = [with_instants(item) for item in page["items"]]
    return wall_now(), [{name: row[name] for name in _TIMER} for row in rows]


async def retry_timer(api: ApiClient, kind: str, ref: str, key: str, who: str) -> Row:
    answer: Row = await api.write("/v1/timers:retry", {"kind": kind, "ref": ref, "key": key})
    return answer


async def list_rules(api: ApiClient, kind: str | None, name: str | None) -> list[Row]:
    if name is None or kind is None:
        return await api.items("/v1/rules", 100_000, kind=kind)
    try:
        return [with_instants(await api.get(f"/v1/rules/{kind}/{quote(name, safe='')}"))]
    except NotFound:
        return []


async def list_channels(api: ApiClient) -> list[Row]:
    return await api.items("/v1/channels", 500)


async def test_channel(api: ApiClient, name: str, transition: str) -> tuple[bool, DeliveryOutcome]:
    from rules.delivery.outcome import DeliveryOutcome

    body = {"transition": transition}
    answer = await api.write(f"/v1/channels/{quote(name, safe='')}:test", body, has_key=False)
    return answer["enabled"], DeliveryOutcome(answer["state"], answer["text"])


async def examine(api: ApiClient, settings: Settings) -> list[Finding]:
    answer = await api.get("/v1/doctor")
    return [Finding(**finding) for finding in answer["findings"]]


async def send(
    api: ApiClient,
    owner: str,
    key: str,
    value: float | int | str | bool,
    ts: str | None,
    labels: dict[str, str],
) -> None:
    at = None if ts is None else instant_option(ts, "--ts").isoformat()
    datapoint = {"owner": owner, "key": key, "value": value, "ts": at, "labels": labels}
    await api.write("/v1/datapoints", {"datapoints": [datapoint]}, has_key=False)


async def emit(api: ApiClient, type: str, **fields: Any) -> UUID:
    plain = {
        name: value if isinstance(value, str | dict | None) else _plain(value)
        for name, value in fields.items()
    }
    return UUID((await api.write("/v1/events", {"type": type, **plain}, has_key=False))["id"])


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


async def check_in(
    api: ApiClient,
    name: str,
    status: str,
    owner: str | None,
    run: str,
    exit_code: int | None,
    duration_s: float | None,
    log: str,
) -> None:
    body = {
        **{"status": status, "owner": owner, "run": run, "exit_code": exit_code},
        **{"duration_s": duration_s, "log": log[-4096:]},
    }
    await api.write(f"/v1/heartbeats/{quote(name, safe='')}:check-in", body, has_key=False)


async def add_token(api: ApiClient, name: str, grants: list[str], expires: str | None, who: str) -> NewToken:
    from schemas.values.duration import parse_duration
    from tocsin.api.access.tokens import NewToken

    expires_at = None if expires is None else (wall_now() + parse_duration(expires)).isoformat()
    body = {"name": name, "grants": grants, "expires_at": expires_at}
    answer = await api.write("/v1/tokens", body, has_key=False)
    return NewToken(UUID(answer["id"]), answer["token"])


async def list_tokens(api: ApiClient) -> list[Row]:
    return await api.items("/v1/tokens", 500)


async def revoke_token(api: ApiClient, token: str, who: str) -> Row:
    live = [row for row in await list_tokens(api) if row["revoked_at"] is None]
    found = next((row for row in live if token in (row["id"], row["name"])), None)
    if found is None:
        raise NotFound(f"there is no token {token!r}", remedy="`tocsin token list` lists them")
    await api.write(f"/v1/tokens/{found['id']}", method="DELETE", has_key=False)
    return found


async def add_login(api: ApiClient, name: str, grants: list[str], who: str) -> str:
    from tocsin.cli.remote.address import api_url

    answer = await api.write("/v1/sessions:login", {"name": name, "grants": grants}, has_key=False)
    return f"{api_url()}{answer['path']}"
