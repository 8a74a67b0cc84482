"""A bar on stderr for what takes long; nothing where stderr is not a terminal, so that logs and pipes stay clean.

It is gone when the work is done: what remains on the terminal is the command's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


@contextmanager
def progress_bar(what: str, first: int, last: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to be told the last one done, from `first` to `last`."""
    from rich.progress import MofNCompleteColumn

    with _bar(MofNCompleteColumn()) as bar:
        task = bar.add_task(what, total=max(0, last - first + 1))
        yield lambda done: bar.update(task, completed=done - first + 1)


@contextmanager
def part_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Gives a function to be told how much of the whole is done, from 0 to 1."""
    from rich.progress import TaskProgressColumn

    with _bar(TaskProgressColumn()) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)
        bar.update(task, completed=1.0)


def _bar(amount: ProgressColumn) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
