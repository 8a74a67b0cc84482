"""Tokens: their text, their life, and what an invalid one gets."""

from __future__ import annotations

import base64

import pytest

from tests.api.running_api import RunningApi
from tests.sql import one_row
from tocsin.api.access.known_tokens import KnownTokens
from tocsin.api.access.secret_text import digest_of, is_secret, new_secret
from tocsin.core.db import Connection


def test_a_mistyped_token_is_recognised_without_the_database() -> None:
    token = new_secret("api")
    assert is_secret(token, "api")
    assert not is_secret(token, "session")
    for place in range(len("tocsin_api_"), len(token)):
        other = "A" if token[place] != "A" else "B"
        assert not is_secret(token[:place] + other + token[place + 1 :], "api")


async def test_the_caller_is_the_name_of_the_token_with_its_grants(api: RunningApi) -> None:
    ann = await api.client("viewer:plant-*", "operator:mill", name="ann")
    answer = await ann.get("/v1/me")
    assert answer.status == 200
    assert (answer.json["name"], answer.json["grants"]) == ("ann", ["viewer:plant-*", "operator:mill"])
    assert "view-alarms" in answer.json["operations"]
    assert "view-rules" not in answer.json["operations"], "it concerns the instance"


async def test_a_token_is_accepted_where_other_clients_send_it(api: RunningApi) -> None:
    _, token = await api.mint("viewer:*")
    stranger = await api.with_token(None)
    basic = base64.b64encode(f"any:{token}".encode()).decode()
    for header in (f"Bearer {token}", f"bearer {token}", f"Token {token}", f"Basic {basic}"):
        answer = await stranger.get("/v1/me", headers={"authorization": header})
        assert answer.status == 200, header


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Basic !", "Basic eDp5", "Digest x", "Bearer " + "x" * 5000]
)
async def test_anything_else_is_401_in_the_same_words(api: RunningApi, header: str) -> None:
    stranger = await api.with_token(None)
    answer = await stranger.get("/v1/me", headers={"authorization": header} if header else {})
    assert (answer.status, answer.problem["type"]) == (401, "/docs/problems#unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_an_unknown_an_expired_and_a_revoked_token_get_the_same_answer(
    api: RunningApi, connection: Connection
) -> None:
    admin = await api.client("admin:*")
    expired = await api.client("viewer:*", name="expired")
    revoked = await api.client("viewer:*", name="revoked")
    await connection.execute(
        "update tocsin.api_token set expires_at = tocsin.instant() - interval '1s' where name = 'expired'"
    )
    assert (await revoked.get("/v1/me")).status == 200
    assert (await admin.delete("/v1/tokens/revoked")).status == 204
    unknown = await api.with_token(new_secret("api"))
    answers = [await client.get("/v1/me") for client in (expired, revoked, unknown)]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1


async def test_an_administrator_makes_a_token_whose_text_is_stored_nowhere(
    api: RunningApi, connection: Connection
) -> None:
    admin = await api.client("admin:*", name="root")
    made = await admin.post("/v1/tokens", {"name": "ci", "grants": ["approver:*"]})
    assert made.status == 201
    token = made.json["token"]
    row = await one_row(connection, "select * from tocsin.api_token where name = 'ci'")
    assert row["digest"] == digest_of(token)
    assert token not in str({**row, "digest": ""})
    listed = (await admin.get("/v1/tokens")).json["items"]
    assert [each["name"] for each in listed] == ["root", "ci"]
    assert token not in str(listed)
    audit = await one_row(connection, "select who, via, verb, name, new from tocsin.audit where name = 'ci'")
    assert (audit["who"], audit["via"], audit["verb"]) == ("root", "api", "add")
    assert audit["new"]["grants"] == ["approver:*"]
    ci = await api.with_token(token)
    assert (await ci.get("/v1/me")).json["name"] == "ci"


async def test_only_an_administrator_manages_tokens(api: RunningApi) -> None:
    operator = await api.client("operator:*", "approver:*")
    assert (await operator.get("/v1/tokens")).status == 403
    assert (await operator.post("/v1/tokens", {"name": "x", "grants": ["admin:*"]})).status == 403
    of_owner = await api.client("admin:plant-*")
    assert (await of_owner.get("/v1/tokens")).status == 403, "tokens concern the instance"


@pytest.mark.parametrize("grant", ["root:*", "viewer", "viewer:", "viewer:a*b", "viewer:**"])
async def test_a_wrong_grant_is_named(api: RunningApi, grant: str) -> None:
    admin = await api.client("admin:*")
    answer = await admin.post("/v1/tokens", {"name": "x", "grants": [grant]})
    assert answer.status == 422
    assert repr(grant) in answer.problem["detail"]


async def test_a_name_belongs_to_one_live_token(api: RunningApi) -> None:
    admin = await api.client("admin:*")
    body = {"name": "ci", "grants": ["viewer:*"]}
    assert (await admin.post("/v1/tokens", body)).status == 201
    again = await admin.post("/v1/tokens", body)
    assert (again.status, "there is a token 'ci' already" in again.problem["detail"]) == (422, True)
    assert (await admin.delete("/v1/tokens/ci")).status == 204
    assert (await admin.delete("/v1/tokens/ci")).status == 404
    assert (await admin.post("/v1/tokens", body)).status == 201


async def test_the_last_use_is_noted(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("viewer:*", name="ann")
    before = await one_row(connection, "select last_used_at from tocsin.api_token where name = 'ann'")
    await ann.get("/v1/me")
    after = await one_row(connection, "select last_used_at from tocsin.api_token where name = 'ann'")
    assert (before["last_used_at"], after["last_used_at"] is None) == (None, False)


def test_a_known_caller_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from tocsin.api.access.caller import Caller
    from tocsin.policy import Principal

    known, now_s = KnownTokens(), [0.0]
    monkeypatch.setattr("tocsin.api.access.known_tokens.time.monotonic", lambda: now_s[0])
    known.keep(b"x", Caller(Principal("ann"), "token"))
    now_s[0] = 4.9
    assert known.find(b"x") is not None
    now_s[0] = 5.1
    assert known.find(b"x") is None
