"""The `test` document: what is given to some rules in virtual time, and what must come of it.

Guarantee: a model that exists has givens and expectations of one kind each, and a notation of
series that can be read. Instants are durations since `start`, or absolute.
"""

import re
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, JsonValue, model_validator

from schemas.documents.strict_model import StrictModel, document_error
from schemas.fields import LONGEST_SNOOZE
from schemas.values.duration import Duration, format_duration, parse_duration
from schemas.values.key_pattern import Key
from schemas.values.names import Name, Owner
from schemas.values.rule_ref import ALARM_RULE_PATTERN
from schemas.wire.calculated import HEALTH_KEY
from tocsin.core.errors import InvalidInput

Value = float | int | str | bool
GIVENS = ("series", "event", "acknowledge", "snooze", "unsnooze", "fail")
EXPECTATIONS = ("opened", "resolved", "sent", "event", "stale", "fresh", "health", "run")
MOST_VALUES = 100_000
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_VALUES = re.compile(
    rf'(?P<value>_|true|false|"[^"]*"|-?{_NUMBER})(?P<step>[+-]{_NUMBER})?(?:x(?P<times>[1-9][0-9]{{0,5}}))?'
)
_NOTATION = 'write values and gaps such as 0 0 70x10 _x5 true "text" 0+5x12'


def expand(text: str) -> list[Value | None]:
    """`0 70x3 _x2 1+2x3` is 0, 70, 70, 70, nothing, nothing, 1, 3, 5."""
    found: list[Value | None] = []
    place = 0
    for match in _VALUES.finditer(text):
        if text[place : match.start()].strip() or (place and text[place : match.start()] == ""):
            break
        place = match.end()
        times = int(match["times"] or 1)
        if len(found) + times > MOST_VALUES:
            raise InvalidInput(f"the series has more than {MOST_VALUES} values", remedy="shorten it")
        found += _values(match["value"], match["step"], times)
    if not text.strip():
        raise InvalidInput(f"the series has no values: {_NOTATION}")
    if text[place:].strip() or not found:
        raise InvalidInput(f"{text[place:].strip()[:40]!r} is not part of a series: {_NOTATION}")
    return found


def _values(text: str, step: str | None, times: int) -> list[Value | None]:
    if step is not None:
        if text in ("_", "true", "false") or text.startswith('"'):
            raise InvalidInput(f"'{text}{step}' cannot grow: {_NOTATION}")
        return [_number(text) + place * _number(step) for place in range(times)]
    if text == "_":
        return [None] * times
    if text in ("true", "false"):
        return [text == "true"] * times
    return [text[1:-1] if text.startswith('"') else _number(text)] * times


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)


def _as_text(value: object) -> object:
    """YAML reads a lone `95` as a number, and `true` as a truth."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _notation(text: str) -> str:
    try:
        expand(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return text


def _instant(text: str) -> str:
    if not re.match(r"[0-9]{4}-", text):
        try:
            parse_duration(text)
        except InvalidInput as error:
            raise ValueError(f"{error}; or write an instant such as 2026-03-04T10:00:00Z") from None
    return text


Instant = Annotated[str, AfterValidator(_instant)]
AlarmRule = Annotated[str, Field(pattern=ALARM_RULE_PATTERN)]


class Given(StrictModel):
    """One thing that comes from outside: a series of datapoints, an event, a person's act, a world
    that fails."""

    at: Instant = Field(
        "0s", description="When, since `start`; of a series: its first value.", examples=["5m"]
    )
    series: Key | None = Field(None, description="Key of datapoints.", examples=["dsp.temperature"])
    values: Annotated[str, AfterValidator(_notation), BeforeValidator(_as_text)] | None = Field(
        None,
        description="Its values, one per `every`; `_` is a gap, `x10` repeats.",
        examples=["0 70x10 _x5"],
    )
    every: Duration | None = Field(None, description="Distance between the values.", examples=["1m"])
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of the series.", examples=[{}])
    event: Name | None = Field(None, description="Type of an event that is caught.", examples=["link-down"])
    payload: dict[str, JsonValue] = Field(default_factory=dict, description="Its payload.", examples=[{}])
    acknowledge: AlarmRule | None = Field(
        None, description="Rule whose open alarm somebody acknowledges.", examples=["dsp-hot"]
    )
    snooze: AlarmRule | None = Field(
        None,
        description="Rule whose open alarm somebody silences; `for` says how long.",
        examples=["dsp-hot"],
    )
    for_: Duration | None = Field(
        None, alias="for", description="With `snooze`: how long, at most 366d.", examples=["2h"]
    )
    unsnooze: AlarmRule | None = Field(
        None, description="Rule whose snoozed alarm somebody lets speak again.", examples=["dsp-hot"]
    )
    by: str = Field("somebody", description="Who does.", examples=["ann"])
    fail: Name | None = Field(None, description="Action whose next attempts fail.", examples=["page"])
    step: str | None = Field(None, description="Only this step of it, by name or kind.", examples=["webhook"])
    times: Annotated[int, Field(ge=1, le=1_000)] = Field(1, description="How many.", examples=[2])
    owner: Owner = Field("", description="Whose series, event or alarm.", examples=["plant-7"])

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        _one_of(self, GIVENS)
        if self.series is not None and (self.values is None or self.every is None):
            raise document_error("has 'series' without 'values' and 'every'", "series")
        if self.every is not None and self.every <= timedelta(0):
            raise document_error("has 'every: 0s': write how far apart the values are, such as 1m", "every")
        if self.series == HEALTH_KEY:
            text = f"'{HEALTH_KEY}' is what follows from the members of a system: give those, and expect 'health'"
            raise document_error(f"gives it: {text}", "series")
        self._check_snooze()
        return self

    def _check_snooze(self) -> None:
        if (self.snooze is None) != (self.for_ is None):
            key, other = ("snooze", "for") if self.for_ is None else ("for", "snooze")
            raise document_error(f"has '{key}' without '{other}'", key)
        if self.for_ is not None and not timedelta(0) < self.for_ <= LONGEST_SNOOZE:
            lasts = format_duration(self.for_)
            raise document_error(
                f"snoozes for {lasts}: write more than 0s and at most {LONGEST_SNOOZE.days}d", "for"
            )


class Expected(StrictModel):
    """One thing that must happen, at its instant."""

    at: Instant | None = Field(
        None, description="When, since `start`; at any time if not given.", examples=["10m"]
    )
    opened: str | None = Field(None, description="Rule whose alarm opens.", examples=["dsp-hot"])
    resolved: str | None = Field(None, description="Rule whose alarm resolves.", examples=["dsp-hot"])
    sent: Name | None = Field(None, description="Action that says something.", examples=["notify-ops"])
    event: Name | None = Field(None, description="Type of an event.", examples=["schedule-fired"])
    stale: Key | None = Field(None, description="Key of a series that goes stale.", examples=["dsp.load"])
    fresh: Key | None = Field(None, description="Key of a series that is fresh again.", examples=["dsp.load"])
    health: Name | None = Field(
        None, description="System whose health changes; `is` says to what.", examples=["cooling"]
    )
    is_: Literal["ok", "degraded", "outage", "unknown"] | None = Field(
        None, alias="is", description="With `health`: what it is from then on.", examples=["outage"]
    )
    run: Name | None = Field(None, description="Action whose run reaches `state`.", examples=["escalate"])
    state: Literal[
        "running", "gathering", "queued", "completed", "failed", "timed_out", "cancelled", "skipped"
    ] = Field("completed", description="With `run`: which state.", examples=["completed"])
    owner: Owner | None = Field(None, description="Whose; anybody's if not given.", examples=["plant-7"])
    says: Annotated[str, BeforeValidator(_as_text)] | None = Field(
        None, description="Text that its message, body or payload holds.", examples=["above 65"]
    )

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        _one_of(self, EXPECTATIONS)
        if (self.health is None) != (self.is_ is None):
            text = "has 'health' without 'is'" if self.is_ is None else "has 'is' without 'health'"
            raise document_error(f"{text}: give both, or none")
        return self

    @property
    def kind(self) -> str:
        return next(key for key in EXPECTATIONS if getattr(self, key) is not None)

    @property
    def name(self) -> str:
        return str(getattr(self, self.kind))

    @property
    def outcome(self) -> str:
        """`opened`, `run completed`, `health outage`."""
        what = {"run": self.state, "health": self.is_}.get(self.kind)
        return f"{self.kind} {what}" if what else self.kind


class RuleTestDocument(StrictModel):
    """A test of rules in virtual time."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="What the rules are held to.", examples=["hot for ten minutes opens an alarm"]
    )
    rules: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = Field(
        description="Rules files, from the folder of the test.", examples=[["threshold.yaml"]]
    )
    start: str = Field(
        "2026-01-05T00:00:00Z", description="When it begins.", examples=["2026-03-04T10:00:00Z"]
    )
    given: Annotated[tuple[Given, ...], Field(strict=False)] = Field(
        (), description="What comes from outside.", examples=[[]]
    )
    until: Instant = Field(description="When it ends.", examples=["1h"])
    expect: Annotated[tuple[Expected, ...], Field(strict=False)] = Field(
        (),
        description="What must happen. Alarms are complete: one that is not named must not open or resolve. So are "
        "the other kinds that are named at least once, or in `nothing_else`.",
        examples=[[]],
    )
    nothing_else: Annotated[
        tuple[Literal["sent", "event", "stale", "fresh", "health", "run"], ...], Field(strict=False)
    ] = Field((), description="Kinds of which nothing happens but what is expected.", examples=[["sent"]])


def _one_of(model: BaseModel, keys: tuple[str, ...]) -> None:
    given = [key for key in keys if getattr(model, key) is not None]
    if len(given) != 1:
        found = f"has {', '.join(given)}" if given else "says nothing"
        raise document_error(f"{found}: give one of {', '.join(keys)}")
