"""Forward-auth: the user and groups of a trusted proxy, and of no other client."""

from __future__ import annotations

from tests.api.recorded import put_alarm
from tests.api.running_api import running_api
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

GROUPS = "ops=responder:plant-*,ops=viewer:*,admins=admin:*"
ANN = {"x-forwarded-user": "ann@example.com", "x-forwarded-groups": "staff, ops"}


def behind(settings: Settings, proxies: str) -> Settings:
    return settings.model_copy(update={"api_trusted_proxies": proxies, "api_groups": GROUPS})


async def test_a_trusted_proxy_names_a_person_whose_groups_become_grants(
    settings: Settings, connection: Connection
) -> None:
    alarm = await put_alarm(connection, "plant-7")
    async with running_api(behind(settings, "10.0.0.0/8, 127.0.0.1")) as api:
        browser = await api.with_token(None)
        me = (await browser.get("/v1/me", headers=ANN)).json
        assert (me["name"], me["credential"]) == ("ann@example.com", "proxy")
        assert me["grants"] == ["responder:plant-*", "viewer:*"]
        done = await browser.post(f"/v1/alarms/{alarm}:ack", {}, headers=ANN)
        assert done.json["alarm"]["acknowledged_by"] == "ann@example.com"
        cross = await browser.post(
            f"/v1/alarms/{alarm}:ack", {}, headers={**ANN, "sec-fetch-site": "cross-site"}
        )
        assert (cross.status, cross.problem["type"]) == (403, "/docs/problems#cross-site")
        unknown = {"x-forwarded-user": "bob", "x-forwarded-groups": "staff"}
        assert (await browser.get("/v1/me", headers=unknown)).json["grants"] == []
        assert (await browser.get("/v1/alarms", headers=unknown)).status == 403


async def test_the_headers_of_any_other_client_prove_nothing(settings: Settings) -> None:
    for proxies in ("", "10.0.0.0/8"):
        async with running_api(behind(settings, proxies)) as api:
            stranger = await api.with_token(None)
            assert (await stranger.get("/v1/me", headers=ANN)).status == 401


async def test_a_header_that_is_there_twice_is_refused(settings: Settings) -> None:
    from multidict import CIMultiDict

    async with running_api(behind(settings, "127.0.0.0/8")) as api:
        stranger = await api.with_token(None)
        twice = CIMultiDict([("x-forwarded-user", "root"), ("x-forwarded-user", "ann")])
        async with stranger.http.get(f"{api.url}/v1/me", headers=twice) as answer:
            assert answer.status == 401
