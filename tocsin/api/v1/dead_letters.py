"""`/v1/dead-letters`: messages that were rejected, and putting them back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from rules.dispatch.put_letters_back import put_letters_back
from rules.lanes.dead_letters import read_dead_letters
from rules.lanes.put_back import LetterFilter, select_letters
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import MOST, Page
from tocsin.core.errors import InvalidInput, Refused
from tocsin.policy import Operation

router = APIRouter(tags=["instance"])
LetterKind = Literal["datapoint", "event", "record", "report", "request", "step"]
_TIMEOUT_S = 5


class DeadLetterView(BaseModel):
    seq: int = Field(description="Position in the stream of dead letters.")
    at: str
    kind: str
    subject: str
    reason: str
    body: str


class DeadLetterRetryRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    seqs: list[Annotated[int, Field(ge=1, le=2**62)]] = Field(default_factory=list, max_length=500)
    kind: LetterKind | None = None
    reason: str | None = Field(default=None, max_length=500, description="A part of the reason.")
    since: AwareDatetime | None = None
    preview: bool = Field(default=False, description="Only count the letters.")
    expected: int | None = Field(default=None, ge=0, le=1_000_000)


class DeadLettersRetried(BaseModel):
    matches: int
    put_back: list[dict[str, Any]]
    kept: list[dict[str, Any]]


@router.get("/dead-letters", summary="List messages that were rejected, the newest first")
async def list_dead_letters(
    access: Annotated[Access, may(Operation.VIEW_DEAD_LETTERS)],
    kind: LetterKind | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> Page[DeadLetterView]:
    js = (await access.context.bus()).jetstream(timeout=_TIMEOUT_S)
    rows = await read_dead_letters(js, access.context.settings, kind, limit)
    names = DeadLetterView.model_fields
    return Page[DeadLetterView](items=[DeadLetterView(**{name: row[name] for name in names}) for row in rows])


@router.post("/dead-letters:retry", summary="Put dead letters back, as new arrivals")
async def retry_dead_letters(
    access: Annotated[Access, may(Operation.RETRY_DEAD_LETTER)], body: DeadLetterRetryRequest
) -> DeadLettersRetried:
    if not (body.seqs or body.kind or body.reason or body.since):
        raise InvalidInput(
            "nothing selects the dead letters", remedy="give `seqs`, `kind`, `reason` or `since`"
        )
    settings = access.context.settings
    js = (await access.context.bus()).jetstream(timeout=_TIMEOUT_S)
    wanted = LetterFilter(frozenset(body.seqs), body.kind, body.reason, body.since)
    letters = await select_letters(js, settings, wanted)
    if body.preview:
        return DeadLettersRetried(matches=len(letters), put_back=[], kept=[])
    if body.expected is not None and body.expected != len(letters):
        raise Refused(
            f"{len(letters)} dead letters match now, not {body.expected}", remedy="preview it again"
        )
    async with access.session() as connection:
        actor = await access.actor(connection)
        back, kept = await put_letters_back(connection, js, settings, letters, actor)
    return DeadLettersRetried(matches=len(letters), put_back=back, kept=kept)
