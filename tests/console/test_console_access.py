"""Every page and act by every role, for an owner of its own and for a foreign one. Enumerated from the routes."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.api.recorded import Recorded, record
from tests.api.running_api import HttpAnswer, HttpClient, RunningApi
from tests.console.visitor import log_in
from tocsin.api.route_group import GuardedRoute, guarded_routes
from tocsin.console.routes import CONSOLE
from tocsin.core.db import Connection
from tocsin.policy import RULES, AccessRole, Scope

CASES = [
    (method, route)
    for route in guarded_routes([CONSOLE])
    for method in route.methods
    if method != "HEAD" and not route.is_public
]
FORMS: dict[str, Any] = {
    "/alarms/{id}/ack": lambda of: {"note": "x"},
    "/alarms/{id}/snooze": lambda of: {"for": "1h"},
    "/alarms/{id}/resolve": lambda of: {},
    "/alarms/ack": lambda of: {"id": str(of.alarm)},
    "/alarms/snooze": lambda of: {"id": str(of.alarm), "for": "1h"},
    "/alarms/resolve": lambda of: {"id": str(of.alarm)},
    "/silences/new": lambda of: {"where": 'owner == "none"', "for": "1h"},
    "/silences/{id}/expire": lambda of: {},
    "/schedules/{id}/run": lambda of: {},
    "/schedules/{id}/pause": lambda of: {},
    "/schedules/{id}/resume": lambda of: {},
    "/schedules/{id}/cancel": lambda of: {},
    "/actions/{id}/retry": lambda of: {},
    "/actions/{id}/cancel": lambda of: {},
    "/dead-letters/retry": lambda of: {},
    "/channels/new": lambda of: {"name": "x", "type": "webhook"},
    "/channels/{name}/edit": lambda of: {"name": "none"},
    "/rules/event_rule/new": lambda of: {"name": "x", "condition": "above", "threshold": "many"},
    "/rules/event_rule/{name}/edit": lambda of: {"name": "none"},
    "/rules/plan": lambda of: {"text": "schedule: {nam: x}"},
    "/rules/apply": lambda of: {"text": "schedule: {nam: x}", "etag": "*"},
    "/rules/{kind}/{name}/toggle": lambda of: {},
    "/rules/{kind}/{name}/delete": lambda of: {},
    "/editor/plan": lambda of: {"text": "schedule: {nam: x}"},
    "/editor/replay": lambda of: {"text": "schedule: {nam: x}"},
    "/editor/apply": lambda of: {"text": "schedule: {nam: x}"},
    "/tokens/revoke": lambda of: {"id": "none"},
}
QUERIES: dict[str, Any] = {
    "/silences/new": lambda of: "?where=true",
    "/alarms/ack": lambda of: f"?id={of.alarm}",
    "/alarms/snooze": lambda of: f"?id={of.alarm}",
    "/alarms/resolve": lambda of: f"?id={of.alarm}",
}
PUBLIC = {"/preferences", "/static/{path:path}"}


async def ask(client: HttpClient, method: str, route: GuardedRoute, of: Recorded) -> HttpAnswer:
    path = route.path.format(**ids(route, of))
    if method == "GET":
        return await client.get(path + QUERIES.get(route.path, lambda _: "")(of))
    form = FORMS[route.path](of)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return await client.request("POST", path, data=form, headers=headers)


def ids(route: GuardedRoute, of: Recorded) -> dict[str, str]:
    by_path = {"alarms": of.alarm, "actions": of.run, "schedules": of.schedule}
    return {
        "id": str(by_path.get(route.path.split("/")[1], uuid.uuid4())),
        "kind": "event_rule",
        "name": "none",
    }


def concerns_an_owner(route: GuardedRoute, method: str) -> bool:
    return "{id}" in route.path or route.path.startswith("/alarms/")


def texts_of(of: Recorded, answer: HttpAnswer) -> set[str]:
    """Texts of an owner in an answer, without those that the caller itself sent."""
    content = answer.text + str(answer.headers)
    sent = {str(of.alarm), str(of.run), str(of.schedule)}
    return {text for text in of.texts - sent if text in content}


def test_only_files_and_preferences_are_public() -> None:
    assert {route.path for route in guarded_routes([CONSOLE]) if route.is_public} == PUBLIC


def test_every_act_has_an_example() -> None:
    """A new act is tested as soon as it exists: this fails until it has an example."""
    assert {route.path for method, route in CASES if method == "POST"} - set(FORMS) == set()


async def test_no_page_answers_without_credentials(console: RunningApi, connection: Connection) -> None:
    of = await record(console, connection, "plant-7")
    stranger = await console.with_token(None)
    for method, route in CASES:
        answer = await ask(stranger, method, route, of)
        assert (answer.status, "tocsin token login" in answer.text) == (401, True), (method, route)
        assert "www-authenticate" not in answer.headers, "a browser would ask for a password"


@pytest.mark.parametrize("role", list(AccessRole))
async def test_a_role_may_do_what_the_policy_allows_and_is_refused_the_rest(
    console: RunningApi, connection: Connection, role: AccessRole
) -> None:
    of = await record(console, connection, "plant-7")
    everywhere = await console.client(f"{role}:*")
    elsewhere = await console.client(f"{role}:mill-*")
    for method, route in CASES:
        place = f"{role} {method} {route.path}"
        assert route.operation is not None
        roles, scope = RULES[route.operation]
        allowed = role is AccessRole.ADMIN or role in roles
        answer = await ask(everywhere, method, route, of)
        assert (answer.status == 403) is not allowed, (place, answer)
        assert answer.status < 500, (place, answer)
        foreign = await ask(elsewhere, method, route, of)
        if not allowed or scope is Scope.INSTANCE:
            assert foreign.status == 403, (place, foreign)
        elif concerns_an_owner(route, method):
            assert foreign.status == 404, (place, foreign)
        elif method == "GET":
            assert foreign.status == 200, (place, foreign)
        assert not texts_of(of, foreign), (place, foreign)


async def test_a_grant_elsewhere_allows_nothing_for_an_owner_that_is_only_viewed(
    console: RunningApi, connection: Connection
) -> None:
    of = await record(console, connection, "plant-7")
    caller = await console.client("viewer:*", "admin:mill-*")
    for method, route in CASES:
        assert route.operation is not None
        if not route.operation.startswith("view-"):
            answer = await ask(caller, method, route, of)
            assert answer.status == 403, (method, route, answer)


async def test_two_callers_see_nothing_of_each_other(console: RunningApi, connection: Connection) -> None:
    plant, mill = await record(console, connection, "plant-7"), await record(console, connection, "mill-1")
    client = await console.client("admin:plant-7")
    for method, route in CASES:
        answer = await ask(client, method, route, plant)
        assert not {text for text in mill.texts if text in answer.text + str(answer.headers)}, (method, route)


async def test_another_site_cannot_act_with_the_session_of_a_person(
    console: RunningApi, connection: Connection
) -> None:
    of = await record(console, connection, "plant-7")
    person = await log_in(console, connection)
    for method, route in CASES:
        if method == "POST":
            path = route.path.format(**ids(route, of))
            answer = await person.send(path, FORMS[route.path](of), site="cross-site")
            assert (answer.status, "another site" in answer.text) == (403, True), route
