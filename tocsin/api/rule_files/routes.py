"""`/v1/rules:check`, `:complete`, `:plan`, `:apply`, `:test` and `:backtest`.

The body has the files as texts. `rules:apply` needs `If-Match` with the ETag of `GET /v1/rules:version` or of
a plan, so that no apply overwrites another one. Applying the same files again changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, cast

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from schemas.values.severities import severities
from tocsin.api.access.permission import Access, may
from tocsin.api.context import ApiContext
from tocsin.api.limits import lift_time_limit
from tocsin.api.problems import ProblemRaised
from tocsin.api.route_group import RouteGroup
from tocsin.api.rule_files.command import MAX_FILES, ReportPercent, RuleCommands, RuleFile
from tocsin.api.rule_files.complete import complete
from tocsin.api.rule_files.progress import MEDIA_TYPE, ProgressStream, Work, until_left, wants_progress
from tocsin.core.db import fetch_all, fetch_value
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation

NAME = "rule_files"
router = APIRouter(tags=["rules"])
_WITHIN_S = 60.0
_MOST_COMPLETIONS = 200
_BACKTEST_WITHIN_S = 600.0
Answer = dict[str, Any]
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The result; as server-sent events with the progress if the client accepts them.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}


class RuleFiles(BaseModel):
    model_config = ConfigDict(extra="forbid")

    files: list[RuleFile] = Field(min_length=1, max_length=MAX_FILES)


class PlannedFiles(RuleFiles):
    prune: bool = Field(
        default=False, description="Remove documents that were applied and are not in the files."
    )


class AppliedFiles(PlannedFiles):
    large: bool = Field(
        default=False, description="Apply even if so many alarms change that datapoints wait."
    )


class TestedFiles(RuleFiles):
    tests: list[str] | None = Field(default=None, description="Names of the files with tests; all if null.")
    only: str | None = Field(default=None, max_length=200, description="Only tests whose name has this text.")


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    line: int = Field(ge=1, le=1_000_000, description="From 1.")
    column: int = Field(ge=1, le=1_000_000, description="From 1: 1 is before the first character.")


class CompletionView(BaseModel):
    label: str
    kind: str = Field(description="`key`, `value` or `name`, which is the name of an applied document.")
    detail: str


class Completions(BaseModel):
    completions: list[CompletionView]


class ReplayedFiles(RuleFiles):
    since: str = Field(
        default="7d", max_length=60, pattern="^[0-9A-Za-z]", description="A duration ago, or an instant."
    )
    until: str | None = Field(default=None, max_length=60, pattern="^[0-9A-Za-z]")


@router.get("/rules:version", summary="The version of the rule set, as ETag")
async def read_rules_version(
    access: Annotated[Access, may(Operation.VIEW_RULES)], response: Response
) -> Answer:
    seq = await rules_seq(access)
    response.headers["etag"] = f'"{seq}"'
    return {"seq": seq}


@router.post("/rules:check", summary="Check rule files")
async def check_rules(
    access: Annotated[Access, may(Operation.CHECK_RULES)], request: Request, body: RuleFiles
) -> Answer:
    return cast(Answer, await _run(request, access, "check", body.files, _names(body.files)))


@router.post("/rules:complete", summary="Complete a rule file at a place")
async def complete_rules(access: Annotated[Access, may(Operation.CHECK_RULES)], body: Place) -> Completions:
    async with access.session() as connection:
        rows = await fetch_all(connection, "tocsin.api.rule_files/list_names")
    names: dict[str, list[str]] = {"severity": list(severities())}
    for kind, name in rows:
        names.setdefault(kind, []).append(name)
    found = complete(body.text, body.line, body.column, names)
    return Completions(completions=[CompletionView(**one._asdict()) for one in found[:_MOST_COMPLETIONS]])


@router.post("/rules:plan", summary="Show what an apply would change")
async def plan_rules(
    access: Annotated[Access, may(Operation.PLAN_RULES)],
    request: Request,
    response: Response,
    body: PlannedFiles,
) -> Answer:
    response.headers["etag"] = f'"{await rules_seq(access)}"'
    return await _plan(request, access, body)


@router.post("/rules:apply", summary="Apply rule files: all of them, or nothing")
async def apply_rules(
    access: Annotated[Access, may(Operation.APPLY_RULES)],
    request: Request,
    response: Response,
    body: AppliedFiles,
    if_match: Annotated[str | None, Header()] = None,
) -> Answer:
    await _check_match(request, access, body, if_match)
    options = ["--created-by", access.caller.name, "--created-via", access.via, "--yes"]
    options += [flag for flag, is_on in (("--prune", body.prune), ("--large", body.large)) if is_on]
    answer = await _run(request, access, "apply", body.files, [*options, *_names(body.files)])
    response.headers["etag"] = f'"{await rules_seq(access)}"'
    return cast(Answer, answer)


@router.post(
    "/rules:test",
    summary="Run rule tests in virtual time",
    response_model=list[Answer],
    responses=_STREAMED,
)
async def test_rules(
    access: Annotated[Access, may(Operation.TEST_RULES)], request: Request, body: TestedFiles
) -> Any:
    only = [] if body.only is None else ["--only", body.only]
    names = [file.name for file in body.files]
    unknown = sorted(set(body.tests or ()) - set(names))
    if unknown:
        raise InvalidInput(f"there is no file {unknown[0]!r}", remedy="name files of the request in tests")
    words = ["--within", ".", *only, "--", *(body.tests or names)]
    return await _stream_or_run(request, access, "test", body.files, words, _WITHIN_S)


@router.post(
    "/rules:backtest",
    summary="Replay recorded data with candidate rules",
    response_model=Answer,
    responses=_STREAMED,
)
async def backtest_rules(
    access: Annotated[Access, may(Operation.TEST_RULES)], request: Request, body: ReplayedFiles
) -> Any:
    return await _stream_or_run(
        request, access, "backtest", body.files, _replay_words(body), _BACKTEST_WITHIN_S
    )


async def replay_rules(request: Request, access: Access, body: ReplayedFiles, within_s: float) -> Answer:
    """The report of a backtest, within a time."""
    return cast(Answer, await _run(request, access, "backtest", body.files, _replay_words(body), within_s))


def _replay_words(body: ReplayedFiles) -> list[str]:
    words = [word for file in body.files for word in ("--rules", file.name)]
    until = [] if body.until is None else ["--until", body.until]
    return [*words, "--since", body.since, *until, "--jobs", "1"]


async def _plan(request: Request, access: Access, body: PlannedFiles) -> Answer:
    prune = ["--prune"] if body.prune else []
    return cast(Answer, await _run(request, access, "plan", body.files, [*prune, *_names(body.files)]))


async def _check_match(request: Request, access: Access, body: PlannedFiles, if_match: str | None) -> None:
    """Refuse an apply of files that were made for another rule set, unless nothing would change."""
    if if_match is None:
        raise ProblemRaised(
            "no-precondition",
            "If-Match is missing",
            remedy="send the ETag of `POST /v1/rules:plan` or `GET /v1/rules:version`, or * for any",
        )
    current = f'"{await rules_seq(access)}"'
    if if_match in ("*", current):
        return
    if (await _plan(request, access, body))["changes"]:
        raise ProblemRaised(
            "changed",
            f"the rule set has version {current}, not {if_match[:40]}",
            remedy="plan again; `tocsin audit` shows who applied what",
            headers={"etag": current},
        )


async def rules_seq(access: Access) -> int:
    async with access.session() as connection:
        return int(await fetch_value(connection, "tocsin.api.rule_files/read_rules_seq"))


async def _run(
    request: Request,
    access: Access,
    command: str,
    files: list[RuleFile],
    words: list[str],
    within_s: float | None = None,
) -> Any:
    lift_time_limit(request)
    return await until_left(request, _work(access, command, files, words, within_s or _WITHIN_S))


async def _stream_or_run(
    request: Request, access: Access, command: str, files: list[RuleFile], words: list[str], within_s: float
) -> Any:
    work = _work(access, command, files, words, within_s)
    if wants_progress(request):
        return ProgressStream(work)
    lift_time_limit(request)
    return await until_left(request, work)


def _work(access: Access, command: str, files: list[RuleFile], words: list[str], within_s: float) -> Work:
    commands = cast(RuleCommands, access.context.parts[NAME])

    async def work(report: ReportPercent | None) -> Any:
        return await commands.run(command, files, words, within_s=within_s, report=report)

    return work


def _names(files: list[RuleFile]) -> list[str]:
    """The files as the last words of a command: a name may begin with a hyphen."""
    return ["--", *(file.name for file in files)]


@asynccontextmanager
async def _commands(context: ApiContext) -> AsyncIterator[RuleCommands]:
    yield RuleCommands(context.settings)


GROUP = RouteGroup(NAME, router=router, lifespan=_commands)
