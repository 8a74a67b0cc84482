"""`tocsin env`: prints the addresses of the servers as `export` lines for a shell. Reads only."""

from __future__ import annotations

import shlex

import typer

from tocsin.cli.options import Json
from tocsin.cli.output import print_json
from tocsin.core.errors import Refused


def env(as_json: Json = False) -> None:
    """Print the addresses of the servers as `export` lines.

    They come from the environment, or from the `tocsin up` that runs here. The lines may hold a
    password.

    \b
    Example:
      eval "$(tocsin env)"
    """
    from tocsin.cli.session import current_settings

    settings = current_settings()
    variables = {
        "TOCSIN_POSTGRES": settings.postgres,
        "TOCSIN_NATS": settings.nats,
        "TOCSIN_NATS_INBOX": settings.nats_inbox,
        "TOCSIN_NAMESPACE": settings.namespace,
    }
    missing = [name for name, value in variables.items() if not value]
    if missing:
        raise Refused(
            f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not known",
            remedy="run `tocsin up` in this directory, or set the variables",
        )
    if as_json:
        print_json(variables)
        return
    for name, value in variables.items():
        typer.echo(f"export {name}={shlex.quote(value)}")
