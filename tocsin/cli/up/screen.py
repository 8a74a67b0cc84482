"""Where `up` shows things: a live view on a terminal, plain flushed lines anywhere else.

Guarantee: without a terminal there are no colours and no cursor movements, and each line is out before the
next one happens. Whoever closes our output (`tocsin up | head`) ends `up` like Ctrl-C does.

Why the live view draws once a frame: it shares its thread with the services, and drawing it anew for each record of a
flood takes longer than making the records does. Of more than nobody can read in a frame, the newest are shown and the
others are counted.
"""

from __future__ import annotations

import sys
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import typer

from tocsin.cli.output import due_text, local_text, printable, title
from tocsin.cli.up.lines import Line
from tocsin.cli.up.view import State, line_text, restarts_text, view

if TYPE_CHECKING:
    from rich.console import Console

_LINES_A_FRAME = 100


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
        restarts = sum(one.times for one in state.waiting.values())
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
    def __init__(self, state: State, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = console or Console(highlight=False, markup=False)
        self._live = Live(view(state), console=self._console, auto_refresh=False)
        self._lines: deque[Line] = deque()
        self._left_out = 0
        self._left_out_from = 0

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._print_lines()
        finally:
            self._live.__exit__(kind, error, trace)

    def say(self, text: str) -> None:
        self._console.print(printable(text))

    def show(self, line: Line) -> None:
        """With the next frame."""
        self._lines.append(line)
        if len(self._lines) > _LINES_A_FRAME:
            left_out = self._lines.popleft()
            self._left_out_from = self._left_out_from or left_out.seq
            self._left_out += 1

    def refresh(self, state: State) -> None:
        self._live.update(view(state))
        if not self._print_lines():
            self._live.refresh()

    def _print_lines(self) -> bool:
        """All of them at once: whatever is printed draws the view anew below it."""
        from rich.console import Group
        from rich.text import Text

        texts = [line_text(line) for line in self._lines]
        if self._left_out:
            seq = self._left_out_from
            said = (
                f"{self._left_out} records are not shown, from seq {seq} on: `tocsin tail --from-seq {seq}`"
            )
            texts.insert(0, Text(said, style="dim"))
        self._lines.clear()
        self._left_out = self._left_out_from = 0
        if texts:
            self._console.print(Group(*texts))
        return bool(texts)
