"""`tocsin up`: runs an instance in one process, with its own servers and its data in a directory.

Guarantees: SIGINT and SIGTERM stop everything, also during the start, and leave no process behind.
A second `up` on the same directory is rejected. The next `up` continues where the record log ends.
A wrong setting or a missing rule file is reported before anything starts. All problems of the rule
files are listed, and then nothing more starts.

Why in this order: the servers are started from the main thread before the event loop, because the
kernel ties the life of a child to the thread that forked it. The services log to a file, because
their lines would break the live view. If a server stops, `up` ends with the path of the log of that
server.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.core.addresses import DATA_VARIABLE, DEFAULT_DATA, publish_addresses

if TYPE_CHECKING:
    from tocsin.core.settings import Settings

_LOG_BYTES_KEPT = 8_000_000


def up(
    files: Annotated[list[Path] | None, typer.Argument(help="More rule files.", metavar="[FILES]...")] = None,
    data: Annotated[
        Path, typer.Option("--data", envvar=DATA_VARIABLE, help="Directory for the data.")
    ] = DEFAULT_DATA,
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", help="Rule file or folder to apply; may be repeated.")
    ] = None,
) -> None:
    """Run an instance here, with its own Postgres and NATS.

    Shows each fire and alarm. Other commands find it if they run in the same directory, or if TOCSIN_DATA
    names its data directory. Ctrl-C stops it; the data stays.

    \b
    Example:
      tocsin up --rules examples/quickstart.yaml
    """
    from tocsin.core.import_names import refuse_shadowed_names

    refuse_shadowed_names()
    try:
        with _interruptible() as interrupted:
            _up(data, [*(rules or ()), *(files or ())], interrupted)
    except KeyboardInterrupt:
        pass
    typer.echo("stopped", err=True)


def _up(data: Path, rules: Sequence[Path], interrupted: list[int]) -> None:
    from tocsin.cli.up.services import database_url, own_settings, serve
    from tocsin.core.settings import forget_credentials, read_settings
    from tocsin.embedded import embedded_servers
    from tocsin.embedded.binaries import refuse_missing_wheels
    from tocsin.nats_access.embedded_users import LOCAL

    refuse_missing_wheels()
    namespace = read_settings().namespace
    _refuse_missing_files(rules)
    typer.echo(f"starting postgres and nats in '{data}' ...", err=True)
    with embedded_servers(data, namespace=namespace) as servers:
        try:
            postgres = database_url(servers.postgres_url)
            settings = own_settings(servers, postgres, LOCAL)
            forget_credentials()
            directory = data.expanduser().resolve()
            with (
                _logging_to(directory / "tocsin.log", settings),
                publish_addresses(
                    directory,
                    postgres,
                    settings.nats,
                    nats_inbox=settings.nats_inbox,
                    nats_admin=servers.nats_url,
                ),
            ):
                run_command(serve(servers, settings, directory, rules, interrupted))
        finally:
            # A second Ctrl-C must not interrupt the stop of the servers, which takes a moment.
            _ignore_signals()


def _refuse_missing_files(rules: Sequence[Path]) -> None:
    from rules.documents.load.files import read_files
    from rules.documents.load.problems import RulesInvalid

    _, problems = read_files(rules)
    if problems:
        raise RulesInvalid(problems)


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Treat SIGTERM like Ctrl-C until the event loop handles the signals.

    The list has the signals that arrived: Python drops an exception that is raised inside a destructor or a
    callback of an import.
    """
    interrupted: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        signal.default_int_handler(number, frame)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _logging_to(path: Path, settings: Settings) -> Iterator[None]:
    """Log to a file for the length of the block; JSON lines unless the settings ask for the console's form."""
    from tocsin.core.logs import configure_logs
    from tocsin.core.private_files import open_private

    if path.exists() and path.stat().st_size > _LOG_BYTES_KEPT:
        path.replace(path.with_suffix(".log.1"))
    opened = open_private(path, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(opened, "a", encoding="utf-8", buffering=1) as file:
        log_format = "json" if settings.log_format == "auto" else settings.log_format
        configure_logs(settings.model_copy(update={"log_format": log_format}), file)
        try:
            yield
        finally:
            configure_logs(settings)
