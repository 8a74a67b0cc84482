"""An event is evaluated with the versions that hold at its seq, however late."""

from __future__ import annotations

from typing import Any

import pytest

from rules.dispatch.matcher import ActionMatcher, Match
from rules.documents.rule_book import RuleBook, applied_documents
from rules.language.cel import compile_event_condition
from schemas.documents import ActionDocument
from schemas.wire.event import Event
from tests.rules.apply.apply_setup import action, event_bodies, note, put, rule, schedule, versions
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput


async def facts_of(connection: Connection, seq: int) -> dict[str, Any]:
    return Event.model_validate_json((await event_bodies(connection, after=seq - 1))[0]).facts()


def new_book() -> RuleBook[ActionMatcher]:
    return RuleBook(ActionMatcher, *ActionMatcher.DOCUMENT_TYPES)


async def matches(
    connection: Connection, seq: int, book: RuleBook[ActionMatcher] | None = None
) -> list[Match]:
    book = book or new_book()
    await book.refresh(connection, seq)
    return book.at(seq).match(await facts_of(connection, seq))


def messages(matches: list[Match]) -> list[tuple[str, str]]:
    return [(match.rule, match.document["log"]["message"]) for match in matches]


async def test_a_rule_sees_only_events_after_its_apply(connection: Connection) -> None:
    before = await note(connection)
    applied = await put(connection, action("tell") + rule("each", "tell", "true"))
    after = await note(connection)
    assert applied.seq is not None
    assert (before, applied.seq, after) == (1, 2, 3)
    assert await matches(connection, before) == []
    assert await matches(connection, applied.seq) == []
    assert [match.rule for match in await matches(connection, after)] == ["each"]


async def test_a_late_evaluation_uses_the_version_of_the_time(connection: Connection) -> None:
    await put(connection, action("tell", "one") + rule("each", "tell", "true"))
    early = await note(connection)
    changed = await put(connection, action("tell", "two"))
    late = await note(connection)
    assert changed.seq == 3
    book = new_book()
    await book.refresh(connection, 1)
    found = [
        messages(book.at(seq).match(await facts_of(connection, seq))) for seq in (early, changed.seq, late)
    ]
    # The event of the apply is the last one for which the former versions hold.
    assert found == [[("each", "one")], [("each", "one")], [("each", "two")]]


async def test_a_condition_that_changed_holds_from_its_apply_on(connection: Connection) -> None:
    await put(connection, action("tell") + rule("each", "tell", 'owner == "a"'))
    first = [await note(connection, owner=owner) for owner in "ab"]
    await put(connection, rule("each", "tell", 'owner == "b"'))
    second = [await note(connection, owner=owner) for owner in "ab"]
    book = new_book()
    await book.refresh(connection, first[0])
    found = [bool(book.at(seq).match(await facts_of(connection, seq))) for seq in first + second]
    assert found == [True, False, False, True]


async def test_a_rule_book_in_use_reads_new_versions(connection: Connection) -> None:
    book = new_book()
    first = await note(connection)
    assert await matches(connection, first, book) == []
    await put(connection, action("tell") + rule("each", "tell", "true"))
    assert len(await matches(connection, await note(connection), book)) == 1
    await put(connection, rule("other", "tell", "true"))
    assert len(await matches(connection, await note(connection), book)) == 2


async def test_an_older_event_that_comes_again_is_evaluated_with_the_older_version(
    connection: Connection,
) -> None:
    await put(connection, action("tell", "one") + rule("each", "tell", "true"))
    old = await note(connection)
    await put(connection, action("tell", "two"))
    new = await note(connection)
    book = new_book()
    assert messages(await matches(connection, new, book)) == [("each", "two")]
    assert messages(await matches(connection, old, book)) == [("each", "one")]
    assert messages(await matches(connection, new, book)) == [("each", "two")]


async def test_a_disabled_rule_starts_nothing(connection: Connection) -> None:
    await put(connection, action("tell") + rule("each", "tell", "true", "  enabled: false\n"))
    assert await matches(connection, await note(connection)) == []


async def test_a_removed_action_is_not_started(connection: Connection) -> None:
    await put(connection, action("tell") + rule("each", "tell", "true"))
    early = await note(connection)
    await connection.execute("update tocsin.rule_version set until_seq = 2 where kind = 'action'")
    late = await note(connection)
    assert await versions(connection) == [("action", "tell", 1, 1, 2), ("action_rule", "each", 1, 1, None)]
    assert len(await matches(connection, early)) == 1
    assert await matches(connection, late) == []


async def test_a_schedule_starts_its_own_action(connection: Connection) -> None:
    await put(connection, action("tell", "own") + schedule("beat", extra="  action: tell\n"))
    fired = await note(connection, origin="scheduled", schedule="beat", action="tell")
    other = await note(connection, origin="caused", schedule="beat", action="tell")
    unknown = await note(connection, origin="scheduled", schedule="beat", action="no-such")
    assert messages(await matches(connection, fired)) == [("schedule:beat", "own")]
    assert await matches(connection, other) == []
    assert await matches(connection, unknown) == []


async def test_a_rule_that_no_longer_compiles_does_not_affect_the_others(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(
        connection, action("tell") + rule("bad", "tell", "true") + rule("good", "tell", 'type == "noted"')
    )
    seq = await note(connection)
    compiled: list[str] = []

    def newer_engine(when: str, *, rule: str) -> Any:
        compiled.append(rule)
        if rule == "bad":
            raise InvalidInput("not in this version")
        return compile_event_condition(when, rule=rule)

    monkeypatch.setattr("rules.dispatch.matcher.compile_event_condition", newer_engine)
    book = new_book()
    assert [match.rule for match in await matches(connection, seq, book)] == ["good"]
    await put(connection, action("other"))
    assert [match.rule for match in await matches(connection, await note(connection), book)] == ["good"]
    assert sorted(compiled) == ["bad", "good"]


async def test_conditions_that_no_version_uses_are_released(connection: Connection) -> None:
    book = new_book()
    await put(connection, action("tell"))
    for number in range(4):
        await put(connection, rule("each", "tell", f"seq > {number}"))
        last = await note(connection)
        await matches(connection, last, book)
    assert len(book.at(last)._conditions) == 1


async def test_an_applied_document_that_cannot_be_read_is_left_out(connection: Connection) -> None:
    await put(connection, action("old") + action("new"))
    unreadable = "update tocsin.rule_version set document = '{\"name\": \"old\"}' where name = 'old'"
    await connection.execute(unreadable)
    (document,) = await applied_documents(connection, ActionDocument)
    assert isinstance(document, ActionDocument)
    assert document.name == "new"
