"""`tocsin forget`: erases the data of one owner, from an instance or from a recording.

Guarantee: it shows what is still active and changes nothing then. Otherwise it asks before it begins.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.confirm import Yes, confirm
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, check_output, current_user
from tocsin.cli.output import print_json, printable, utc_text
from tocsin.core.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from datetime import datetime

    from rules.erasure.active import ActiveItems

_INSTANCE_OWNER = "tocsin:"


def forget(
    owner: Annotated[str, typer.Argument(help="The owner whose data is erased.")],
    recording: Annotated[
        Path | None,
        typer.Option("--recording", help="Write this file of `tocsin export` again without the owner."),
    ] = None,
    yes: Yes = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Erase the contents of everything that was recorded for an owner.

    Records keep their place in the log, without payloads. Stop what is active first. Interrupted, it
    continues when it is called again. Needs the owner of the schema and the NATS user `admin`.

    \b
    Examples:
      tocsin forget customer-4711
      tocsin forget customer-4711 --recording recording.ndjson.gz
    """
    if not owner or owner.startswith(_INSTANCE_OWNER):
        raise InvalidInput(
            f"{owner!r} is not an owner of data", remedy="name an owner, as in `tocsin series`"
        )
    if recording is not None:
        _forget_in_recording(owner, recording, as_json)
        return
    active = run_command(_active(owner))
    if active:
        listed = "; ".join(items.text for items in active)
        raise Refused(f"owner {owner!r} still has {listed}", remedy=active[0].remedy)
    if not yes:
        confirm(printable(f"erase all data of the owner {owner!r}? It cannot be restored."))
    counts, left, stream_until = run_command(_forget(owner, by or current_user(), quiet=as_json))
    if as_json:
        print_json({"owner": owner, "erased": counts, "left": left, "record_stream_until": stream_until})
        return
    for what, count in counts.items():
        if count:
            typer.echo(f"{what}: {count:,} erased")
    for text in left:
        typer.echo(printable(f"left, because it became active meanwhile: {text}; run the command again"))
    typer.echo(
        f"the record stream keeps contents until {utc_text(stream_until)}; `tocsin cdc rebuild` removes them now"
    )


def _forget_in_recording(owner: str, path: Path, as_json: bool) -> None:
    check_output(path, "--recording")
    left = run_command(_rewrite(owner, path))
    if as_json:
        print_json({"file": str(path), "owner": owner, **left})
        return
    typer.echo(f"{path}: {left['owners']:,} other owners stay")


async def _active(owner: str) -> list[ActiveItems]:
    from rules.erasure.active import find_active
    from tocsin.cli.session import admin_settings, database

    async with database(admin_settings()) as connection:
        return await find_active(connection, owner)


async def _forget(owner: str, who: str, *, quiet: bool) -> tuple[dict[str, int], list[str], datetime]:
    from datetime import timedelta

    from rules.erasure.active import find_active
    from rules.erasure.erase import begin_or_continue, erase
    from tocsin.cli.session import admin_settings, command_actor, database, message_bus
    from tocsin.policy import Operation

    def report(what: str, count: int) -> None:
        if not quiet:
            typer.echo(f"{what}: {count:,}", err=True)

    settings = admin_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        actor = await command_actor(connection, who, Operation.FORGET_OWNER)
        erasure = await begin_or_continue(connection, owner, actor)
        counts = await erase(connection, bus.jetstream(), settings, owner, erasure, actor, report)
        left = [items.text for items in await find_active(connection, owner)]
    return counts, left, actor.now + timedelta(hours=settings.stream_max_age_h)


async def _rewrite(owner: str, path: Path) -> dict[str, int]:
    from rules.replay.backtest.recording.parquet import open_recording, write_parquet
    from rules.replay.backtest.recording.recording import write_recording
    from rules.replay.backtest.recording.without_owner import WithoutOwner

    source = WithoutOwner(open_recording(path), owner)
    write = write_parquet if path.suffix == ".parquet" else write_recording
    return await write(source, path)
