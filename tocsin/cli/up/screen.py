"""The screen of `up`: a live view on a terminal, plain lines otherwise.

Guarantees: without a terminal there are no colours and no cursor movements, and each line is
flushed at once. If the reader closes the output (`tocsin up | head`), `up` ends as on Ctrl-C.

Why the live view draws once per frame: it shares its thread with the services, and under load
drawing for each record takes longer than making the records. If a frame has more lines than a
person can read, the newest are shown and the others are counted.
"""

from __future__ import annotations

import sys
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import typer

from tocsin.cli.output import due_text, local_text, printable, title
from tocsin.cli.up.lines import Line
from tocsin.cli.up.view import ViewState, address_rows, line_text, restarts_text, services_text, view

if TYPE_CHECKING:
    from rich.console import Console

_LINES_PER_FRAME = 100


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
    def refresh(self, state: ViewState) -> None: ...


def screen_for(state: ViewState) -> Screen:
    return LiveScreen(state) if sys.stdout.isatty() else PlainScreen(state)


class PlainScreen:
    """One line per record. The next fires are listed once, at the start."""

    def __init__(self, state: ViewState) -> None:
        self._state = state
        self._introduced = False
        self._restarts = 0

    def __enter__(self) -> Self:
        state = self._state
        self.say(f"tocsin {state.version} runs {services_text(state)}; Ctrl-C stops everything")
        for name, value in address_rows(state):
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

    def refresh(self, state: ViewState) -> None:
        restarts = sum(restarts.times for restarts in state.restarts.values())
        if restarts > self._restarts:
            self._restarts = restarts
            self.say(f"restart  {restarts_text(state)}")
        if self._introduced or state.now is None:
            return
        self._introduced = True
        for fire in state.coming_fires:
            distance = due_text(fire.fire_at - state.now)
            note = f"  {fire.note}" if fire.note else ""
            when = local_text(fire.at, fire.tz)
            self.say(f"next    {title(fire.owner, fire.schedule)}  {when}  {distance}{note}")


class LiveScreen:
    def __init__(self, state: ViewState, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = console or Console(highlight=False, markup=False)
        self._live = Live(view(state), console=self._console, auto_refresh=False)
        self._lines: deque[Line] = deque()
        self._omitted = 0
        self._first_omitted = 0

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
        """Show the line with the next frame."""
        self._lines.append(line)
        if len(self._lines) > _LINES_PER_FRAME:
            omitted = self._lines.popleft()
            self._first_omitted = self._first_omitted or omitted.seq
            self._omitted += 1

    def refresh(self, state: ViewState) -> None:
        self._live.update(view(state))
        if not self._print_lines():
            self._live.refresh()

    def _print_lines(self) -> bool:
        """Print all lines at once, because each print draws the view again below it."""
        from rich.console import Group
        from rich.text import Text

        texts = [line_text(line) for line in self._lines]
        if self._omitted:
            seq = self._first_omitted
            note = f"{self._omitted} records are not shown, from seq {seq} on: `tocsin tail --from-seq {seq}`"
            texts.insert(0, Text(note, style="dim"))
        self._lines.clear()
        self._omitted = self._first_omitted = 0
        if texts:
            self._console.print(Group(*texts))
        return bool(texts)
