"""The policy, as a table: every operation, by every role, for an owner of its own and for a foreign one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sql import one_row
from tocsin.core.db import Connection
from tocsin.policy import RULES, AccessRole, Grant, Operation, Principal, Scope, decide, matches

# Written down a second time, by hand: a line that changes in one place only fails here.
TABLE = """
operation           viewer responder author approver sender operator admin scope
view-events         y      y         y      y        -      y        y     owner
view-alarms         y      y         y      y        -      y        y     owner
view-schedules      y      y         y      y        -      y        y     owner
view-series         y      y         y      y        -      y        y     owner
view-actions        y      y         y      y        -      y        y     owner
view-rules          y      y         y      y        -      y        y     instance
view-health         y      y         y      y        -      y        y     instance
view-audit          -      -         y      y        -      y        y     instance
view-dead-letters   -      -         -      -        -      y        y     instance
acknowledge-alarm   -      y         -      -        -      y        y     owner
snooze-alarm        -      y         -      -        -      y        y     owner
resolve-alarm       -      y         -      -        -      y        y     owner
silence-alarms      -      y         -      -        -      y        y     instance
check-rules         -      -         y      y        -      -        y     instance
plan-rules          -      -         y      y        -      -        y     instance
test-rules          -      -         y      y        -      -        y     instance
apply-rules         -      -         -      y        -      -        y     instance
test-channel        -      -         -      y        -      y        y     instance
put-schedule        -      -         y      y        -      y        y     owner
pause-schedule      -      -         -      -        -      y        y     owner
run-schedule        -      -         -      -        -      y        y     owner
cancel-schedule     -      -         y      y        -      y        y     owner
retry-run           -      -         -      -        -      y        y     owner
cancel-run          -      -         -      -        -      y        y     owner
retry-timer         -      -         -      -        -      y        y     instance
retry-dead-letter   -      -         -      -        -      y        y     instance
send-data           -      -         -      -        y      y        y     owner
emit-event          -      -         -      -        y      y        y     owner
prune               -      -         -      -        -      y        y     instance
repair-log          -      -         -      -        -      y        y     instance
forget-owner        -      -         -      -        -      -        y     instance
manage-grants       -      -         -      -        -      -        y     instance
manage-tokens       -      -         -      -        -      -        y     instance
"""
HEAD, *LINES = (line.split() for line in TABLE.strip().splitlines())
CASES = [
    (Operation(line[0]), AccessRole(role), cell == "y", Scope(line[-1]))
    for line in LINES
    for role, cell in zip(HEAD[1:-1], line[1:-1], strict=True)
]


def of(role: AccessRole, pattern: str) -> Principal:
    return Principal("ann", (Grant(role, pattern),))


def test_every_operation_and_role_is_in_the_table() -> None:
    assert {case[0] for case in CASES} == set(Operation) == set(RULES)
    assert {case[1] for case in CASES} == set(AccessRole)


@pytest.mark.parametrize(("operation", "role", "allowed", "scope"), CASES)
def test_a_role_may_do_what_the_table_allows_for_its_own_owners_only(
    operation: Operation, role: AccessRole, allowed: bool, scope: Scope
) -> None:
    owner = "plant-7" if scope is Scope.OWNER else None
    assert decide(of(role, "*"), operation, owner).allowed is allowed
    assert decide(of(role, "plant-*"), operation, owner).allowed is (allowed and scope is Scope.OWNER)
    assert not decide(of(role, "mill-*"), operation, owner).allowed
    assert not decide(of(role, "plant"), operation, owner).allowed
    assert not decide(of(role, ""), operation, owner).allowed
    assert not decide(Principal("ann"), operation, owner).allowed


@pytest.mark.parametrize("operation", [each for each in Operation if RULES[each][1] is Scope.OWNER])
def test_an_operation_on_an_owner_needs_one(operation: Operation) -> None:
    decision = decide(of(AccessRole.ADMIN, "*"), operation)
    assert (decision.allowed, "none is named" in decision.reason) == (False, True)


def test_a_refusal_names_the_principal_the_operation_and_the_owner() -> None:
    assert decide(of(AccessRole.VIEWER, "*"), Operation.CANCEL_RUN, "plant-7").reason == (
        "'ann' may not cancel-run for owner 'plant-7': it takes one of operator, admin"
    )


@given(st.text(max_size=12), st.text(max_size=12))
def test_a_pattern_without_a_star_names_one_owner(owner: str, other: str) -> None:
    assert matches(owner, owner) or owner.endswith("*")
    assert matches(owner, f"{owner}*")
    assert matches(other, owner) <= (other == owner or owner.endswith("*"))


async def test_the_server_matches_owners_as_the_policy_does(connection: Connection) -> None:
    texts = ["", "*", "plant", "plant-*", "plant-7", "Plant-7", "plant-%", "plant_7", "pl*", "tocsin:x", "ß*"]
    for owner in texts:
        for pattern in texts:
            row = await one_row(
                connection, "select tocsin.owner_matches(%s, array[%s]) as found", (owner, pattern)
            )
            assert row["found"] is matches(owner, pattern), (owner, pattern)
