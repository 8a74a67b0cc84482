"""Puts dead letters back for an operator, each with its audit row.

A letter that cannot be put back is kept, with the reason, and does not stop the others. A record starts
the actions that it has not started; any other message is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nats.js.client import JetStreamContext

from rules.dispatch.dispatch_again import dispatch_again
from rules.lanes.put_back import StoredLetter, delete_letter, letter_facts, put_back, record_seq
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

Facts = dict[str, Any]


async def put_letters_back(
    connection: Connection,
    js: JetStreamContext,
    settings: Settings,
    letters: Sequence[StoredLetter],
    actor: Actor,
) -> tuple[list[Facts], list[Facts]]:
    """Returns those that were put back, and those that were kept with the reason."""
    back: list[Facts] = []
    kept: list[Facts] = []
    for stored in letters:
        facts = letter_facts(stored)
        try:
            if stored.kind == "record":
                await dispatch_again(connection, settings, record_seq(stored))
                await delete_letter(js, settings, stored)
            else:
                await put_back(js, settings, stored)
        except Refused as error:
            kept.append({**facts, "reason": str(error)})
            continue
        back.append(facts)
        old = {"reason": stored.letter.reason, "subject": stored.letter.subject, "at": stored.letter.at}
        await record_audit(connection, actor, "retry", "dead-letter", str(stored.seq), old=old)
    return back, kept
