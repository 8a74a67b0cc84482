"""Where `up` shows things: a live view on a terminal, plain flushed lines anywhere else.

Guarantee: without a terminal there are no colours and no cursor movements, and each line is out before the
next one happens. Whoever closes our output (`tocsin up | head`) ends `up` like Ctrl-C does.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, Self

import typer

from tocsin.cli.printing import due_text, local_text, printable, title
from tocsin.cli.up_lines import Line
from tocsin.cli.up_view import State, line_text, restarts_text, view


class Screen(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def say(self, text: str) -> None: ...
    def show(self, line: Line) -> None: ...
    def refresh(self, state: State) -> None: ...


def screen_for(state: State) -> Screen:
    return LiveScreen(state) if sys.stdout.isatty() else PlainScreen(state)


class PlainScreen:
    """One line per happening. The next fires are said once, at the start."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._introduced = False
        self._restarts = 0

    def __enter__(self) -> Self:
        state = self._state
        self.say(f"tocsin {state.version} runs clock, cdc and worker; Ctrl-C stops everything")
        for name, value in (
            ("postgres", state.postgres),
            ("nats", state.nats),
            ("data", state.data),
            ("log", state.log),
        ):
            self.say(f"{name:<8}  {value}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def say(self, text: str) -> None:
        typer.echo(printable(text))

    def show(self, line: Line) -> None:
        self.say(line.plain())

    def refresh(self, state: State) -> None:
        restarts = sum(count for count, _ in state.waiting.values())
        if restarts > self._restarts:
            self._restarts = restarts
            self.say(f"trouble  {restarts_text(state)}")
        if self._introduced or state.now is None:
            return
        self._introduced = True
        for fire in state.coming:
            distance = due_text(fire.fire_at - state.now)
            note = f"  {fire.note}" if fire.note else ""
            when = local_text(fire.at, fire.tz)
            self.say(f"next    {title(fire.owner, fire.schedule)}  {when}  {distance}{note}")


class LiveScreen:
    def __init__(self, state: State) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False, markup=False)
        self._live = Live(view(state), console=self._console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, text: str) -> None:
        self._console.print(printable(text))

    def show(self, line: Line) -> None:
        self._console.print(line_text(line))

    def refresh(self, state: State) -> None:
        self._live.update(view(state), refresh=True)
