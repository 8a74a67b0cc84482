"""A bar on stderr for what takes long; nothing where stderr is not a terminal, so that logs and pipes stay clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, first: int, last: int) -> Iterator[Callable[[int], None]]:
    """Gives a function to be told the last one done, from `first` to `last`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=max(0, last - first + 1))
        yield lambda done: bar.update(task, completed=done - first + 1)
