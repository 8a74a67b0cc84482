"""`GET /v1/events?after=SEQ`: the records after a position, at once or as soon as there is one.

The answer has the position to send next time. It moves also over records that the query does not select,
so that no record is compared twice. A position that is too far back for the feed is no `resync` here:
the answer has the next page of the tables, for as long as they have it.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from tocsin.api.access.permission import Access
from tocsin.api.limits import lift_time_limit
from tocsin.api.live.door import door_of, selection_of
from tocsin.api.live.record import LiveRecord
from tocsin.api.live.subscription import FeedEnded, Resync
from tocsin.core.errors import Refused

MAX_WAIT_S = 60.0
MAX_RECORDS = 500
# Pages that one request may read without finding anything before it answers with its position.
_MAX_PAGES = 10


async def read_records(
    request: Request, access: Access, *, after: int, wait_s: float, limit: int, query: str
) -> Response:
    selection = selection_of(access, query)
    door = door_of(access.context)
    await door.feed.wait_until_started()
    lift_time_limit(request)
    with door.admit(access), door.feed.subscribe(selection, after) as subscription:
        subscription.never_skip(_MAX_PAGES)
        answer = await subscription.next(min(wait_s, MAX_WAIT_S))
        if isinstance(answer, Resync):
            raise Refused(
                f"the records after {after} cannot be read: {answer.reason}",
                remedy=f"begin again after {answer.last}, and read what you show from the lists",
            )
        records = [] if isinstance(answer, FeedEnded) else answer.records
        return _response(records[:limit], subscription.position if len(records) <= limit else None)


def _response(records: list[LiveRecord], position: int | None) -> Response:
    after = records[-1].seq if position is None else position
    bodies = b",".join(record.body for record in records)
    return Response(
        b'{"items":[%b],"after":%d}' % (bodies, after),
        media_type="application/json",
        headers={"cache-control": "no-store"},
    )
