"""Turns errors into the texts that commands print, and runs the coroutine of a command.

Problems of rule files keep their bare `file:line:column: message` form, one per line, so that an
editor can jump to them. A server that stops answering in the middle of a command is an
`Unreachable` like one that was never there.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import closing
from typing import Any, TypeVar

import typer

from tocsin.core.errors import Refused, TocsinError, Unreachable

Result = TypeVar("Result")


def error_text(error: TocsinError) -> str:
    # Only errors of rule files have `problems`. Importing their class would slow every command's start.
    return str(error) if hasattr(error, "problems") else f"tocsin: {error}"


def error_json(error: TocsinError) -> str:
    """One document; errors of rule files also list their `problems`."""
    from tocsin.cli.output import json_text

    problems = getattr(error, "problems", None)
    if problems is None:
        return json_text({"error": {"message": error.message, "remedy": error.remedy}}, indent=2)
    message = f"{len(problems)} problem{'' if len(problems) == 1 else 's'} in the rule files"
    shown = [problem._asdict() for problem in problems]
    remedy = "fix the problems that are listed"
    return json_text({"error": {"message": message, "remedy": remedy, "problems": shown}}, indent=2)


def usage_error_json(error: typer.TyperException) -> str:
    from tocsin.cli.output import json_text

    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "tocsin"
    fields = {"message": error.format_message(), "remedy": f"see `{command} --help`"}
    return json_text({"error": fields}, indent=2)


def usage_message(error: typer.BadParameter) -> str:
    """The message of pydantic, which typer reads values with, in the words of our other errors."""
    from pydantic import ValidationError

    from schemas.error_text import fault_text

    if not isinstance(error.__cause__, ValidationError):
        return error.message
    return fault_text(error.__cause__.errors(include_url=False)[0]).lstrip(": ")


def run_command(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's coroutine. Errors of the Postgres and NATS drivers become `TocsinError`s."""
    # `closing`: Ctrl-C may arrive before the coroutine has begun.
    with closing(work):
        return _run(work)


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    import asyncio

    import psycopg
    from nats.errors import Error as NatsError

    from tocsin.core.sql_errors import OUTAGE

    try:
        return asyncio.run(work)
    except OUTAGE as error:
        raise Unreachable(
            f"postgres closed the connection or did not answer ({_first_line(error)})", remedy="try again"
        ) from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(
            f"postgres denies the access ({_first_line(error)})",
            remedy="use the role that ran `tocsin migrate`",
        ) from None
    except NatsError as error:
        raise Unreachable(
            f"nats closed the connection or did not answer ({_first_line(error)})", remedy="try again"
        ) from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
