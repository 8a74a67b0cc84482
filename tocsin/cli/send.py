"""`tocsin send`: sends a datapoint.

Guarantee: when it returns, JetStream has stored the datapoint. A datapoint that a worker would
reject is rejected here, with the same error.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, instant_option
from tocsin.cli.output import print_json, printable
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput

_TIMEOUT_S = 5.0
_NEGATIVE = re.compile(r"-\.?[0-9].*")
_OPTIONS_WITH_VALUE = ("--ts", "--label")


class SendCommand(TyperCommand):
    """Accepts a negative VALUE such as `-5`: no Tocsin option begins with a digit."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _value_last(args))


def _value_last(words: list[str]) -> list[str]:
    for index, word in enumerate(words):
        if word == "--":
            break
        if _NEGATIVE.fullmatch(word) and (index == 0 or words[index - 1] not in _OPTIONS_WITH_VALUE):
            return [*words[:index], *words[index + 1 :], "--", word]
    return words


def send(
    owner: Annotated[str, typer.Argument(help="Owner of the series.")],
    key: Annotated[str, typer.Argument(help="Key of the series, such as dsp.temperature.")],
    value: Annotated[str, typer.Argument(help="Number, true or false; anything else is text.")],
    ts: Annotated[
        str | None,
        typer.Option("--ts", help="Instant of the measurement, such as 2026-03-07T00:00Z; now by default."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", help="Label as NAME=TEXT; may be repeated.")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Take VALUE as text, even if it looks like a number.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Send one datapoint.

    \b
    Examples:
      tocsin send plant-7 dsp.temperature 66.5
      tocsin send plant-7 outside.temperature -5
      tocsin send plant-7 door open --ts 2026-03-07T00:00Z --label zone=north
    """
    parsed = value if text else _parse_value(value)
    run_command(_send(owner, key, parsed, ts, _parse_labels(label or [])))
    if as_json:
        print_json({"owner": owner, "key": key, "value": parsed})
    else:
        typer.echo(printable(f"sent {key} of {owner!r}: {json.dumps(parsed, ensure_ascii=False)}"))


def _parse_value(text: str) -> float | int | str | bool:
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, float | int | bool) else text


def _parse_labels(words: list[str]) -> dict[str, str]:
    labels = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator or not name:
            raise InvalidInput(f"--label {word!r} has no name", remedy="write NAME=TEXT")
        labels[name] = text
    return labels


@over_http("instance.send")
async def _send(
    owner: str, key: str, value: float | int | str | bool, ts: str | None, labels: dict[str, str]
) -> None:
    from tocsin.cli.session import command_settings
    from tocsin.client.producer import Producer

    at = None if ts is None else instant_option(ts, "--ts")
    async with Producer(command_settings(), timeout_s=_TIMEOUT_S) as producer:
        await producer.send(owner, key, value, ts=at, labels=labels)
