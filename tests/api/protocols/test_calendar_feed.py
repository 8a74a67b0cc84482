"""The calendar feed: who may read it, and what it shows."""

from __future__ import annotations

from tests.api.running_api import RunningApi
from tests.rules.apply.apply_setup import put
from tocsin.api.access.secret_text import hide_secrets
from tocsin.core.db import Connection

RULES = """
schedule: {name: digest, cron: 0 8 * * *, owner: web-1, title: "Digest; daily"}
---
schedule: {name: secret-work, cron: 0 9 * * *, owner: db-1}
"""


async def test_the_feed_has_the_fires_of_the_owners_of_the_token(
    api: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    _, token = await api.mint("viewer:web-*")
    stranger = await api.with_token(None)
    answer = await stranger.get(f"/feeds/{token}/schedules.ics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    assert answer.text.count("BEGIN:VEVENT") == 500
    assert "SUMMARY:Digest\\; daily (web-1)" in answer.text
    assert "secret-work" not in answer.text


async def test_the_feed_needs_a_token_that_may_view_schedules(api: RunningApi) -> None:
    stranger = await api.with_token(None)
    for token in ("x", "tocsin_api_000000000000000000000000000000000"):
        assert (await stranger.get(f"/feeds/{token}/schedules.ics")).status == 401
    viewer = await api.client("viewer:*")
    assert (await stranger.get(f"/v1/me?token={viewer.token}")).status == 401


async def test_a_token_in_a_path_is_left_out_of_logs(api: RunningApi) -> None:
    _, token = await api.mint("viewer:*")
    assert hide_secrets(f"/feeds/{token}/x") == "/feeds/tocsin_api_.../x"
