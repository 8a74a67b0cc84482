"""The `test` document: inputs of some rules in virtual time, and the expected results.

Guarantee: each input and each expectation of a valid model has exactly one kind, and the values of
a series can be expanded. Instants are durations since `start`, or absolute.
"""

import re
from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, JsonValue, model_validator

from schemas.documents.rule_test_check_in import CheckInKeys
from schemas.documents.rule_test_keys import EXPECTATIONS, INPUTS, KEYS_OF_INPUTS, Kind
from schemas.documents.rule_test_silence import SilenceInput
from schemas.documents.strict_model import StrictModel, document_error
from schemas.fields import MAX_SNOOZE
from schemas.values.duration import Duration, format_duration, parse_duration
from schemas.values.key_pattern import Key
from schemas.values.names import Name, Owner
from schemas.values.rule_ref import ALARM_RULE_PATTERN
from schemas.wire.calculated import CALC_PREFIX, HEALTH_KEY
from tocsin.core.errors import InvalidInput

Value = float | int | str | bool
"""The keys that belong to some kinds of inputs only, and would have no effect elsewhere."""
MAX_VALUES = 100_000
SHORTEST_OUTAGE = timedelta(seconds=2)
"""`rules.lanes.arrival_gap.SHORTEST_GAP`: a shorter time without arrivals is no gap."""
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_VALUES = re.compile(
    rf'(?P<value>_|true|false|"[^"]*"|-?{_NUMBER})(?P<step>[+-]{_NUMBER})?(?:x(?P<times>[1-9][0-9]{{0,5}}))?'
)
_NOTATION = 'write values and gaps such as 0 0 70x10 _x5 true "text" 0+5x12'


def expand(text: str) -> list[Value | None]:
    """Expand the notation of a series: `0 70x3 _x2 1+2x3` is 0, 70, 70, 70, None, None, 1, 3, 5."""
    values: list[Value | None] = []
    end = 0
    for match in _VALUES.finditer(text):
        if text[end : match.start()].strip() or (end and text[end : match.start()] == ""):
            break
        end = match.end()
        times = int(match["times"] or 1)
        if len(values) + times > MAX_VALUES:
            raise InvalidInput(f"the series has more than {MAX_VALUES} values", remedy="shorten it")
        values += _values(match["value"], match["step"], times)
    if not text.strip():
        raise InvalidInput("the series has no values", remedy=_NOTATION)
    if text[end:].strip() or not values:
        raise InvalidInput(f"{text[end:].strip()[:40]!r} is not part of a series", remedy=_NOTATION)
    return values


def _values(text: str, step: str | None, times: int) -> list[Value | None]:
    if step is not None:
        if text in ("_", "true", "false") or text.startswith('"'):
            raise InvalidInput(f"'{text}{step}' is not a number with a step", remedy=_NOTATION)
        return [_number(text) + number * _number(step) for number in range(times)]
    if text == "_":
        return [None] * times
    if text in ("true", "false"):
        return [text == "true"] * times
    return [text[1:-1] if text.startswith('"') else _number(text)] * times


def _number(text: str) -> float | int:
    return float(text) if "." in text else int(text)


def _as_text(value: object) -> object:
    """Convert to text. YAML reads a single `95` as a number and `true` as a boolean."""
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
    if re.match(r"[0-9]{4}-", text):
        return _absolute(text)
    try:
        parse_duration(text)
    except InvalidInput as error:
        raise ValueError(f"{error}; or write an instant such as 2026-03-04T10:00:00Z") from None
    return text


def _absolute(text: str) -> str:
    try:
        is_aware = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        is_aware = False
    if not is_aware:
        raise ValueError(f"'{text}' is not an instant: write it as 2026-03-04T10:00:00Z")
    return text


def _ts(text: str) -> str:
    if text[:1] not in "+-":
        return _instant(text)
    try:
        parse_duration(text[1:])
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return text


def _outage(duration: timedelta) -> timedelta:
    if duration <= SHORTEST_OUTAGE:
        raise ValueError(f"it must be longer than {format_duration(SHORTEST_OUTAGE)} to be noticed")
    return duration


Instant = Annotated[str, AfterValidator(_instant)]
Ts = Annotated[str, AfterValidator(_ts)]
AbsoluteInstant = Annotated[str, AfterValidator(_absolute)]
OneOrMore = Annotated[
    tuple[str, ...],
    Field(strict=False),
    BeforeValidator(
        lambda value: [value] if isinstance(value, str) else value,
        json_schema_input_type=str | tuple[str, ...],
    ),
]
_Text = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=Value)]
AlarmRule = Annotated[str, Field(pattern=ALARM_RULE_PATTERN)]


class Given(CheckInKeys):
    """One input of a test: a series, an event, an operator's act, or an action that fails."""

    at: Instant = Field(
        "0s", description="Time since `start`; of a series: of its first value.", examples=["5m"]
    )
    series: Key | None = Field(None, description="Key of datapoints.", examples=["dsp.temperature"])
    values: Annotated[_Text, AfterValidator(_notation)] | None = Field(
        None,
        description="Its values, one per `every`; `_` is a gap, `x10` repeats.",
        examples=["0 70x10 _x5"],
    )
    every: Duration | None = Field(None, description="Distance between the values.", examples=["1m"])
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of the series.", examples=[{}])
    batch: bool = Field(
        False,
        description="All values arrive in one message at `at`. Their `ts` are `every` apart, the last is `at`.",
        examples=[True],
    )
    ts: Ts | None = Field(
        None,
        description="`ts` of the values or of the event: before (`-10m`) or after (`+10s`) the arrival, or an "
        "instant, from which the values go on by `every`.",
        examples=["-10m"],
    )
    event: Name | None = Field(None, description="Type of an external event.", examples=["link-down"])
    payload: dict[str, JsonValue] = Field(default_factory=dict, description="Its payload.", examples=[{}])
    id: str | None = Field(
        None,
        description="Its idempotency key: a second event with it is the same event.",
        examples=["order-17"],
    )
    severity: str | None = Field(None, description="Its severity level.", examples=["high"])
    correlation_id: str | None = Field(
        None, description="Its correlation id: a UUID, or the `id` of another event.", examples=["order-17"]
    )
    reply_to: Name | None = Field(
        None,
        description="Action to whose newest run the event is a reply: it has the correlation id of the run.",
        examples=["release"],
    )
    acknowledge: AlarmRule | None = Field(
        None, description="Rule whose open alarm an operator acknowledges.", examples=["dsp-hot"]
    )
    snooze: AlarmRule | None = Field(
        None,
        description="Rule whose open alarm an operator snoozes; `for` is the duration.",
        examples=["dsp-hot"],
    )
    for_: Duration | None = Field(
        None, alias="for", description="With `snooze`: the duration, at most 366d.", examples=["2h"]
    )
    resolve: AlarmRule | None = Field(
        None, description="Rule whose open alarms an operator resolves.", examples=["dsp-hot"]
    )
    unsnooze: AlarmRule | None = Field(
        None, description="Rule of a snoozed alarm whose snooze an operator ends.", examples=["dsp-hot"]
    )
    silence: SilenceInput | None = Field(None, description="An operator silences the alarms that match.")
    expire: str | None = Field(
        None, description="Matcher of a silence that an operator ends.", examples=['labels.site == "ams"']
    )
    by: str = Field("operator", description="Name of the operator.", examples=["ann"])
    fail: Name | None = Field(None, description="Action whose next attempts fail.", examples=["page"])
    report: Name | None = Field(
        None,
        description="Action to whose dispatched step a service reports: `result`, or `error` if it failed.",
        examples=["deploy"],
    )
    result: dict[str, JsonValue] = Field(
        default_factory=dict, description="With `report`: the result.", examples=[{"image": "shop:7"}]
    )
    error: str | None = Field(
        None, description="With `report` or `fail`: the reason of the failure.", examples=["no space left"]
    )
    never_reported: Name | None = Field(
        None, description="Action whose dispatched steps get no report: they time out.", examples=["deploy"]
    )
    probe: Name | None = Field(
        None,
        description="Action whose probes find from now on what `well` and `latency_ms` say.",
        examples=["check-shop"],
    )
    well: bool = Field(True, description="With `probe`: whether the service is well.", examples=[False])
    latency_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None,
        description="With `probe`: how fast it answers; by default 10, and no answer if it is not well.",
        examples=[900],
    )
    outage: Annotated[Duration, AfterValidator(_outage)] | None = Field(
        None,
        description="For this time the data stream accepts nothing: values are lost, deadlines are extended.",
        examples=["10m"],
    )
    apply: OneOrMore | None = Field(
        None, description="Rule files to apply. Other documents are removed.", examples=["new.yaml"]
    )
    step: str | None = Field(
        None, description="Only this step of the action, by name or kind.", examples=["webhook"]
    )
    times: Annotated[int, Field(ge=1, le=1_000)] = Field(
        1, description="Number of attempts that fail.", examples=[2]
    )
    owner: Owner = Field("", description="Owner of the series, event or alarm.", examples=["plant-7"])

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        _require_one(self, INPUTS)
        if self.series is not None and (self.values is None or self.every is None):
            raise document_error("has 'series' without 'values' and 'every'", "series")
        if self.every is not None and self.every <= timedelta(0):
            raise document_error("has 'every: 0s': write the time between values, such as 1m", "every")
        if self.series == HEALTH_KEY:
            text = "which follows from the members of a system: give those, and expect 'health'"
            raise document_error(f"is '{HEALTH_KEY}', {text}", "series")
        if self.series is not None and self.series.startswith(CALC_PREFIX):
            text = "which a calc_rule calculates: give its inputs, and expect 'calculated'"
            raise document_error(f"is '{self.series}', {text}", "series")
        self._check_snooze()
        self._check_keys()
        return self

    def _check_keys(self) -> None:
        kind = self.kind
        for key, kinds in KEYS_OF_INPUTS.items():
            if kind not in kinds and key in self.model_fields_set:
                raise document_error(f"has '{key}', which belongs to {' or '.join(kinds)}: remove it", key)
        if self.correlation_id is not None and self.reply_to is not None:
            raise document_error("has 'correlation_id' and 'reply_to': keep one", "reply_to")

    @property
    def kind(self) -> str:
        return next(key for key in INPUTS if getattr(self, key) is not None)

    def _check_snooze(self) -> None:
        if (self.snooze is None) != (self.for_ is None):
            key, other = ("snooze", "for") if self.for_ is None else ("for", "snooze")
            raise document_error(f"has '{key}' without '{other}'", key)
        if self.for_ is not None and not timedelta(0) < self.for_ <= MAX_SNOOZE:
            lasts = format_duration(self.for_)
            raise document_error(
                f"snoozes for {lasts}: write more than 0s and at most {MAX_SNOOZE.days}d", "for"
            )


class Expected(StrictModel):
    """One expected result."""

    at: Instant | None = Field(
        None, description="Time since `start`; any time if not given.", examples=["10m"]
    )
    opened: str | None = Field(None, description="Rule whose alarm opens.", examples=["dsp-hot"])
    changed: str | None = Field(
        None, description="Rule whose open alarm has other series or another severity.", examples=["dsp-hot"]
    )
    resolved: str | None = Field(None, description="Rule whose alarm resolves.", examples=["dsp-hot"])
    sent: Name | None = Field(
        None, description="Action of which a step sends or logs something.", examples=["notify-ops"]
    )
    event: Name | None = Field(None, description="Type of an event.", examples=["schedule-fired"])
    stale: Key | None = Field(None, description="Key of a series that goes stale.", examples=["dsp.load"])
    fresh: Key | None = Field(None, description="Key of a series that is fresh again.", examples=["dsp.load"])
    rejected: Key | None = Field(
        None, description="Key of a datapoint that becomes a dead letter.", examples=["dsp.load"]
    )
    health: Name | None = Field(
        None, description="System whose health changes to `is`.", examples=["cooling"]
    )
    is_: Literal["ok", "degraded", "outage", "unknown"] | None = Field(
        None, alias="is", description="With `health`: the new health.", examples=["outage"]
    )
    run: Name | None = Field(None, description="Action whose run reaches `state`.", examples=["escalate"])
    state: Literal[
        "running", "gathering", "queued", "completed", "failed", "timed_out", "cancelled", "skipped"
    ] = Field("completed", description="With `run`: the state.", examples=["completed"])
    calculated: Name | None = Field(
        None, description="Calc_rule that has a result; `value` is its value.", examples=["error-ratio"]
    )
    value: Annotated[float, Field(allow_inf_nan=False)] | bool | None = Field(
        None, description="With `calculated`: the value, equal in nine digits.", examples=[0.25]
    )
    owner: Owner | None = Field(None, description="Owner; any owner if not given.", examples=["plant-7"])
    says: _Text | None = Field(
        None, description="Text that its message, body or payload contains.", examples=["above 65"]
    )

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        _require_one(self, EXPECTATIONS)
        if (self.health is None) != (self.is_ is None):
            text = "has 'health' without 'is'" if self.is_ is None else "has 'is' without 'health'"
            raise document_error(f"{text}: give both, or none")
        if self.value is not None and self.calculated is None:
            raise document_error("has 'value' without 'calculated': give both, or none", "value")
        return self

    @property
    def kind(self) -> str:
        return next(key for key in EXPECTATIONS if getattr(self, key) is not None)

    @property
    def name(self) -> str:
        return str(getattr(self, self.kind))

    @property
    def outcome(self) -> str:
        """The kind with its state: `opened`, `run completed`, `health outage`."""
        state = {"run": self.state, "health": self.is_}.get(self.kind)
        return f"{self.kind} {state}" if state else self.kind


class Only(StrictModel):
    """Restricts what needs an expectation. A result counts if it matches every key that is given."""

    kinds: Annotated[tuple[Kind, ...], Field(strict=False)] = Field(
        (), description="Kinds of results.", examples=[["sent"]]
    )
    action: OneOrMore = Field((), description="Actions, of `sent` and `run`.", examples=["send-report"])
    rule: OneOrMore = Field((), description="Rules, of `opened` and `resolved`.", examples=["dsp-hot"])
    owner: OneOrMore = Field((), description="Owners.", examples=["plant-7"])

    @model_validator(mode="after")
    def _restricts(self) -> Self:
        if not (self.kinds or self.action or self.rule or self.owner):
            raise document_error("is empty: give kinds, action, rule or owner")
        return self


class RuleTestDocument(StrictModel):
    """A test of rules in virtual time."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="Behaviour that the test checks.", examples=["hot for ten minutes opens an alarm"]
    )
    rules: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = Field(
        description="Rule files, relative to the folder of the test.", examples=[["threshold.yaml"]]
    )
    start: AbsoluteInstant = Field(
        "2026-01-05T00:00:00Z", description="Start of the virtual time.", examples=["2026-03-04T10:00:00Z"]
    )
    given: Annotated[tuple[Given, ...], Field(strict=False)] = Field((), description="Inputs.", examples=[[]])
    until: Instant = Field(description="End of the test.", examples=["1h"])
    expect: Annotated[tuple[Expected, ...], Field(strict=False)] = Field(
        (),
        description="Expected results. For alarms the list is complete: any other opening or resolution fails "
        "the test. The same holds for each kind that is expected at least once or is in `nothing_else`.",
        examples=[[]],
    )
    nothing_else: Annotated[tuple[Kind, ...], Field(strict=False)] = Field(
        (), description="Kinds of which nothing else may happen.", examples=[["sent"]]
    )
    only: Only | None = Field(
        None,
        description="Restricts what needs an expectation; other results may happen as well.",
        examples=[{"action": "send-report"}],
    )


def _require_one(model: BaseModel, keys: tuple[str, ...]) -> None:
    given = [key for key in keys if getattr(model, key) is not None]
    if len(given) != 1:
        problem = f"has {', '.join(given)}" if given else "is empty"
        raise document_error(f"{problem}: give one of {', '.join(keys)}")
