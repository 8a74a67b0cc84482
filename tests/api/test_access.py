"""Every operation by every role, for an owner of its own and for a foreign one. Enumerated from the routes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.api.recorded import Recorded, put_alarm, put_run, record
from tests.api.running_api import HttpClient, RunningApi
from tocsin.api.route_group import GuardedRoute, RouteGroup, guarded_routes
from tocsin.api.routes import GROUPS
from tocsin.core.db import Connection
from tocsin.policy import RULES, AccessRole, Scope

HANDLERS = guarded_routes([RouteGroup(group.name, router=group.router) for group in GROUPS])
CASES = [(method, route) for route in HANDLERS for method in route.methods]
PLAIN = [
    (method, route)
    for route in guarded_routes([RouteGroup(group.name, routes=group.routes) for group in GROUPS])
    for method in route.methods
    if not route.is_public and method not in ("HEAD", "WEBSOCKET")
]
"""Routes of bytes and streams: their own tests have their bodies and owners."""
RULE_FILES = {"files": [{"name": "rules.yaml", "text": "schedule: {name: hourly, every: 1h}"}]}
BODIES: dict[str, Any] = {
    "POST /v1/alarms:ack": lambda of: {"ids": [str(of.alarm)], "note": "x"},
    "POST /v1/alarms:resolve": lambda of: {"ids": [str(of.alarm)]},
    "POST /v1/alarms:snooze": lambda of: {"ids": [str(of.alarm)], "for": "1h"},
    "POST /v1/alarms/{id}:ack": lambda of: {"note": "x"},
    "POST /v1/alarms/{id}:resolve": lambda of: {},
    "POST /v1/alarms/{id}:snooze": lambda of: {"for": "1h"},
    "POST /v1/silences": lambda of: {"matcher": "true", "for": "1h"},
    "POST /v1/schedules": lambda of: {"owner": of.owner, "name": "new", "every": "1h"},
    "PUT /v1/schedules/{id}": lambda of: {"every": "1h"},
    "POST /v1/schedules/{id}:move": lambda of: {"at": "in 10m"},
    "POST /v1/events": lambda of: {"type": "door-closed", "owner": of.owner},
    "POST /v1/datapoints": lambda of: {"datapoints": [{"owner": of.owner, "key": "a", "value": 1}]},
    "POST /v1/dead-letters:retry": lambda of: {"seqs": [1], "preview": True},
    "POST /v1/timers:retry": lambda of: {"kind": "schedule-tick", "ref": "none"},
    "POST /v1/channels/{name}:test": lambda of: {},
    "POST /v1/rules:complete": lambda of: {"text": "event_rule:\n  ", "line": 2, "column": 3},
    **{
        f"POST /v1/rules:{verb}": lambda of: RULE_FILES
        for verb in ("check", "plan", "apply", "test", "backtest")
    },
    "POST /v1/heartbeats/{name}:check-in": lambda of: {"owner": of.owner},
    "POST /v1/sessions:login": lambda of: {"name": "ann", "grants": ["viewer:nothing"]},
    "POST /v1/tokens": lambda of: {"name": f"t-{uuid.uuid4()}", "grants": ["viewer:nothing"]},
}
QUERIES: dict[str, Any] = {
    "GET /v1/records": lambda of: "?after=0&wait=0",
    "GET /v1/series:explain": lambda of: f"?owner={of.owner}&key=room.temperature",
    "GET /v1/rules/event_rule/{name}/explanation": lambda of: f"?owner={of.owner}",
    "GET /v1/heartbeats/{name}/check-ins": lambda of: f"?owner={of.owner}",
}
ONE_BY_QUERY = {"/v1/series:explain"}
NAMES = {"kind": "event_rule", "name": "none", "token": "none"}
# A worker and its streams are not running; the operation is refused before they are needed.
NEEDS_A_WORKER = {
    *("/v1/events", "/v1/datapoints", "/v1/channels/{name}:test", "/v1/heartbeats/{name}:check-in"),
}


def ids(route: GuardedRoute, of: Recorded) -> dict[str, str]:
    by_path = {"alarms": of.alarm, "actions": of.run, "schedules": of.schedule}
    resource = route.path.split("/")[2].partition(":")[0]
    return {**NAMES, "id": str(by_path.get(resource, uuid.uuid4()))}


async def ask(client: HttpClient, method: str, route: GuardedRoute, of: Recorded) -> Any:
    body = BODIES.get(f"{method} {route.path}")
    options: dict[str, Any] = {} if body is None else {"json": body(of)}
    query = QUERIES.get(f"{method} {route.path}")
    path = route.path.format(**ids(route, of)) + ("" if query is None else query(of))
    return await client.request(method, path, headers={"if-match": "*"}, **options)


def test_every_route_with_a_body_has_an_example() -> None:
    """A new handler is tested as soon as it exists: this fails until it has an example."""
    from tocsin.api.app import create_api

    with_body = {
        f"{method.upper()} {path}"
        for path, methods in create_api().openapi()["paths"].items()
        for method, described in methods.items()
        if "requestBody" in described
    }
    assert with_body - set(BODIES) == set()


async def test_no_route_answers_without_credentials(api: RunningApi, connection: Connection) -> None:
    of = await record(api, connection, "plant-7")
    stranger = await api.with_token(None)
    for method, route in CASES:
        answer = await ask(stranger, method, route, of)
        assert (answer.status, answer.problem["type"]) == (401, "/docs/problems#unauthenticated"), route


async def test_plain_routes_refuse_strangers_and_callers_without_the_operation(api: RunningApi) -> None:
    stranger = await api.with_token(None)
    clients = {role: await api.client(f"{role}:*") for role in AccessRole}
    for method, route in PLAIN:
        # Clients that ping know no other refusal than 404.
        unknown, refused = (404, 404) if route.path.startswith("/ping/") else (401, 403)
        answer = await stranger.request(method, plain_path(route, "none"))
        assert answer.status == unknown, (method, route)
        assert route.operation is not None
        for role, client in clients.items():
            if role is not AccessRole.ADMIN and role not in RULES[route.operation][0]:
                answer = await client.request(method, plain_path(route, client.token or ""))
                assert answer.status == refused, (role, method, route)


def plain_path(route: GuardedRoute, token: str) -> str:
    """The path with its parts filled in; some routes have the token of the caller there."""
    return route.path.format(id=uuid.uuid4(), token=token, name="nightly", action="start")


@pytest.mark.parametrize("role", list(AccessRole))
async def test_a_role_may_do_what_the_policy_allows_and_is_refused_the_rest(
    api: RunningApi, connection: Connection, role: AccessRole
) -> None:
    of = await record(api, connection, "plant-7")
    everywhere = await api.client(f"{role}:*")
    elsewhere = await api.client(f"{role}:mill-*")
    for method, route in CASES:
        place = f"{role} {method} {route.path}"
        if route.operation is None:
            assert (await ask(everywhere, method, route, of)).status == 200, place
            continue
        roles, scope = RULES[route.operation]
        allowed = role is AccessRole.ADMIN or role in roles
        if not (allowed and route.path in NEEDS_A_WORKER and method == "POST"):
            answer = await ask(everywhere, method, route, of)
            assert (answer.status == 403) is not allowed, (place, answer)
            assert answer.status < 500, (place, answer)
        foreign = await ask(elsewhere, method, route, of)
        if not allowed or scope is Scope.INSTANCE:
            assert foreign.status == 403, (place, foreign)
        else:
            is_list = method == "GET" and "{" not in route.path and route.path not in ONE_BY_QUERY
            assert foreign.status == (200 if is_list else 404), (place, foreign)
        assert not find_texts(foreign, of), (place, foreign)


async def test_a_grant_elsewhere_allows_nothing_for_an_owner_that_is_only_viewed(
    api: RunningApi, connection: Connection
) -> None:
    of = await record(api, connection, "plant-7")
    caller = await api.client("viewer:*", "admin:mill-*")
    for method, route in CASES:
        if route.operation is None or route.operation.startswith("view-"):
            continue
        answer = await ask(caller, method, route, of)
        assert answer.status == 403, (method, route, answer)


def find_texts(answer: Any, of: Recorded) -> set[str]:
    """Texts of an owner in an answer, without those that the caller itself sent."""
    content = json.dumps({**dict(answer.headers), "body": answer.text})
    sent = {of.owner, str(of.alarm), str(of.run), str(of.schedule)} if answer.status == 404 else set()
    return {text for text in of.texts - sent if text in content}


async def test_two_callers_see_nothing_of_each_other(api: RunningApi, connection: Connection) -> None:
    plant, mill = await record(api, connection, "plant-7"), await record(api, connection, "mill-1")
    clients = {}
    for of in (plant, mill):
        grants = [f"{role}:{of.owner}" for role in AccessRole if role is not AccessRole.ADMIN]
        clients[of.owner] = await api.client(*grants, f"admin:{of.owner}")
    for mine, theirs in ((plant, mill), (mill, plant)):
        client = clients[mine.owner]
        seen = False
        for method, route in CASES:
            if route.path in NEEDS_A_WORKER and method == "POST":
                continue
            answer = await ask(client, method, route, mine)
            assert not {text for text in theirs.texts if text in answer.text + str(answer.headers)}, route
            seen = seen or mine.owner in answer.text
            foreign = await ask(client, method, route, theirs)
            assert not find_texts(foreign, theirs), (method, route, foreign)
        assert seen, "the own rows are in the answers"


async def test_a_caller_that_may_view_and_not_act_is_403_and_one_that_may_not_view_is_404(
    api: RunningApi, connection: Connection
) -> None:
    alarm = await put_alarm(connection, "plant-7")
    both = await api.client("viewer:plant-*", "responder:mill-*")
    answer = await both.post(f"/v1/alarms/{alarm}:ack", {})
    assert (answer.status, "may not acknowledge-alarm for owner 'plant-7'" in answer.text) == (403, True)
    other = await api.client("responder:mill-*")
    unknown = await other.post(f"/v1/alarms/{uuid.uuid4()}:ack", {})
    foreign = await other.post(f"/v1/alarms/{alarm}:ack", {})
    assert (foreign.status, unknown.status) == (404, 404)
    assert foreign.text.replace(str(alarm), "") == unknown.text.replace(
        unknown.problem["detail"].split("'")[1], ""
    ), "an alarm of another owner and none at all have the same answer"


async def test_a_matcher_matches_alarms_of_own_owners_only(api: RunningApi, connection: Connection) -> None:
    own = await put_alarm(connection, "plant-7")
    await put_alarm(connection, "mill-1")
    responder = await api.client("responder:plant-*", "viewer:*")
    preview = await responder.post("/v1/alarms:ack", {"where": "true", "preview": True})
    assert (preview.json["matches"], [each["id"] for each in preview.json["preview"]]) == (1, [str(own)])
    done = await responder.post("/v1/alarms:ack", {"where": "true", "expected": 1})
    assert [each["id"] for each in done.json["changed"]] == [str(own)]


async def test_an_explanation_names_no_alarm_of_another_owner_that_holds_it(
    api: RunningApi, connection: Connection
) -> None:
    held, other = await put_alarm(connection, "plant-7"), await put_alarm(connection, "mill-1")
    run = await put_run(connection, "plant-7", held, state="running")
    await connection.execute("update tocsin.action set held_by = %s where id = %s", ([f"alarm:{other}"], run))
    await connection.execute(
        "insert into tocsin.action_event (action_rule, event_id, event_seq, action_id, alarm_id)"
        " values ('page-rule', %s, 1, %s, %s)",
        (uuid.uuid4(), run, held),
    )
    whole = await (await api.client("viewer:*")).get(f"/v1/alarms/{held}/explanation")
    assert str(other) in whole.text
    own = await (await api.client("viewer:plant-*")).get(f"/v1/alarms/{held}/explanation")
    assert (str(other) in own.text, "held by another alarm" in own.text) == (False, True)
