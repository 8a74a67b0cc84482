"""A progress bar on stderr for long work.

It appears on a terminal only, so that logs and pipes stay clean, and disappears when the work is
done, so that only the command's answer stays on the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


@contextmanager
def progress_bar(label: str, first: int, last: int) -> Iterator[Callable[[int], None]]:
    """Yields a function that takes the number of the last item done, from `first` to `last`."""
    from rich.progress import MofNCompleteColumn

    with _bar(MofNCompleteColumn()) as bar:
        task = bar.add_task(label, total=max(0, last - first + 1))
        yield lambda done: bar.update(task, completed=done - first + 1)


@contextmanager
def fraction_bar(label: str) -> Iterator[Callable[[float], None]]:
    """Yields a function that takes the part that is done, from 0 to 1."""
    from rich.progress import TaskProgressColumn

    with _bar(TaskProgressColumn()) as bar:
        task = bar.add_task(label, total=1.0)
        yield lambda done: bar.update(task, completed=done)
        bar.update(task, completed=1.0)


def progress_lines() -> Callable[[float], None]:
    """A function that writes the part that is done to stderr, one line for each percent, for programs."""
    shown = -1

    def report(done: float) -> None:
        nonlocal shown
        if int(done * 100) > shown:
            shown = int(done * 100)
            typer.echo(f"progress {shown}", err=True)

    return report


def _bar(amount: ProgressColumn) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
