"""The groups of the command tree: help in sections, renamed commands, and the errors of every
command.

Guarantees:

- Help never cuts a summary. It uses the width of the terminal, at most 120 columns, and wraps.
- A `TocsinError` of any command ends as `tocsin: message` on stderr and its exit code, without a
  traceback. Any other exception is a defect and keeps its traceback.
- With `--json`, a failing command prints exactly one document on stdout, a wrong command line
  included: `{"error": {"message": ..., "remedy": ...}}`. The exit code is the same.
- A reader that closes our output, as `head` does, ends the command without an error.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from tocsin.cli.errors import error_json, error_text, usage_error_json, usage_message
from tocsin.core.errors import TocsinError

HELP_WIDTH = 120
_NEVER_CUT = 1_000
_JSON_OPTIONS = {"--json", "--json-lines"}
_WORDS = "tocsin.words"
RENAMED = {
    "channel": "channels",
    "dead": "dead-letters",
    "schedule get": "schedule show",
    "when": "parse-time",
}
"""Former names of commands, for an error that names the new one."""


class Group(TyperGroup):
    """Commands with whole summaries, in the sections that they name as `rich_help_panel`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in commands if not command.hidden]
        width = max(len(name) for name, _ in shown)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in shown:
            section = getattr(command, "rich_help_panel", None) or "Commands"
            row = (name.ljust(width), command.get_short_help_str(_NEVER_CUT))
            sections.setdefault(section, []).append(row)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The name of a subcommand is not taken for an argument of the group itself.

        Without one, a group with arguments is a command: its options may follow them.
        """
        params = self.params
        own = [param for param in params if param.param_type_name != "argument"]
        if args and args[0] in self.commands:
            self.params = own
        elif len(own) < len(params):
            ctx.allow_interspersed_args = True
        try:
            return super().parse_args(ctx, args)
        finally:
            self.params = params

    def get_params(self, ctx: Any) -> Any:
        """Without arguments for a subcommand, whose path in usage texts would contain them."""
        params = super().get_params(ctx)
        return params if ctx.command is self else [p for p in params if p.param_type_name != "argument"]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        path = " ".join((ctx.command_path, args[0])).partition(" ")[2]
        if args[0] not in self.commands and path in RENAMED:
            ctx.fail(f"'tocsin {path}' is now 'tocsin {RENAMED[path]}'.")
        return super().resolve_command(ctx, args)


class RootGroup(Group):
    """The top of the command tree, where every error of a command arrives."""

    order: tuple[str, ...] = ()
    """The names of the commands as help lists them; typer puts those with subcommands last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=self.order.index)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        wants_json = not _JSON_OPTIONS.isdisjoint(ctx.meta[_WORDS])
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            if isinstance(error, typer.BadParameter):
                error.message = usage_message(error)
            if not wants_json:
                raise
            typer.echo(usage_error_json(error))
            raise typer.Exit(error.exit_code) from None
        except TocsinError as error:
            typer.echo(error_json(error) if wants_json else error_text(error), err=not wants_json)
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            # Python flushes stdout once more when it exits, and that must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
