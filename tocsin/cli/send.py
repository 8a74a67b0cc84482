"""`tocsin send` and `tocsin emit`: a datapoint and an event from the command line.

Guarantee: when it returns, JetStream has it. What a worker would set aside is refused here, with the same sentence.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from tocsin.cli.errors import finish
from tocsin.cli.options import Json, instant_option
from tocsin.cli.output import print_json, printable
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    pass

_PATIENCE_S = 5.0
_NEGATIVE = re.compile(r"-\.?[0-9].*")
_WITH_A_VALUE = ("--ts", "--label")


class SendCommand(TyperCommand):
    """VALUE may be negative: `-5` is a temperature, and no option of ours begins with a digit."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _value_last(args))


def _value_last(words: list[str]) -> list[str]:
    for place, word in enumerate(words):
        if word == "--":
            break
        if _NEGATIVE.fullmatch(word) and (place == 0 or words[place - 1] not in _WITH_A_VALUE):
            return [*words[:place], *words[place + 1 :], "--", word]
    return words


def send(
    owner: Annotated[str, typer.Argument(help="Whose series it is.")],
    key: Annotated[str, typer.Argument(help="Which series, such as dsp.temperature.")],
    value: Annotated[str, typer.Argument(help="A number, true or false; anything else is a text.")],
    ts: Annotated[
        str | None, typer.Option("--ts", help="When it was measured, such as 2026-03-07T00:00Z; now.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", help="NAME=TEXT; several are allowed.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="VALUE is a text, whatever it looks like.")] = False,
    as_json: Json = False,
) -> None:
    """Send one datapoint.

    \b
    Examples:
      tocsin send plant-7 dsp.temperature 66.5
      tocsin send plant-7 outside.temperature -5
      tocsin send plant-7 door open --ts 2026-03-07T00:00Z --label zone=north
    """
    given = value if text else _value(value)
    finish(_send(owner, key, given, ts, _labels(label or [])))
    if as_json:
        print_json({"owner": owner, "key": key, "value": given})
    else:
        typer.echo(printable(f"sent {key} of {owner!r}: {json.dumps(given, ensure_ascii=False)}"))


def _value(text: str) -> float | int | str | bool:
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, float | int | bool) else text


def _labels(given: list[str]) -> dict[str, str]:
    labels = {}
    for one in given:
        name, separator, label = one.partition("=")
        if not separator or not name:
            raise InvalidInput(f"--label {one!r} names no label", remedy="write NAME=TEXT")
        labels[name] = label
    return labels


async def _send(
    owner: str, key: str, value: float | int | str | bool, ts: str | None, labels: dict[str, str]
) -> None:
    from tocsin.cli.session import command_settings
    from tocsin.client.producer import Producer

    at = None if ts is None else instant_option(ts, "--ts")
    async with Producer(command_settings(), timeout_s=_PATIENCE_S) as producer:
        await producer.send(owner, key, value, ts=at, labels=labels)
