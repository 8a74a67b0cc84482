"""What a failing command prints, and its exit code.

Guarantee: every `TocsinError` ends as `tocsin: message` on stderr and its `exit_code`, without a traceback.
Problems of rules files keep their bare `file:line:column: message` form, one per line, so that an editor
can jump to them. A server that vanished in the middle of a command is unreachable too. Anything else is a
defect and keeps its traceback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import closing
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

from tocsin.core.errors import Refused, TocsinError, Unreachable

Result = TypeVar("Result")


class Commands(TyperGroup):
    """The top of the command tree: where every error of a command arrives."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            wrong.message = _in_our_words(wrong)
            raise
        except TocsinError as error:
            typer.echo(sentence(error), err=True)
            raise typer.Exit(error.exit_code) from None


def sentence(error: TocsinError) -> str:
    # Only errors of rules files have `problems`; importing their class would slow every command's start.
    return str(error) if hasattr(error, "problems") else f"tocsin: {error}"


def _in_our_words(wrong: typer.BadParameter) -> str:
    """Typer reads values with pydantic, and says what that says."""
    from pydantic import ValidationError

    from schemas.refusals import fault

    if not isinstance(wrong.__cause__, ValidationError):
        return wrong.message
    return fault(wrong.__cause__.errors(include_url=False)[0]).lstrip(": ")


def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's coroutine to its end, with the errors of both servers in our own words."""
    # Also when Ctrl-C comes before it has begun.
    with closing(work):
        return _finish(work)


def _finish(work: Coroutine[Any, Any, Result]) -> Result:
    import psycopg
    from nats.errors import Error as NatsError

    from tocsin.core.sql_errors import OUTAGE

    try:
        return asyncio.run(work)
    except OUTAGE as error:
        raise Unreachable(
            f"postgres went away or did not answer ({_first_line(error)})", remedy="try again"
        ) from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(
            f"postgres refuses ({_first_line(error)})", remedy="use the role that ran `tocsin migrate`"
        ) from None
    except NatsError as error:
        raise Unreachable(
            f"nats went away or did not answer ({_first_line(error)})", remedy="try again"
        ) from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
